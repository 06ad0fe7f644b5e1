"""More clients: the utility by Theorem 3 of PFL (Bhaskar et al. 2025), and the noise in the mean of their models."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from rich.console import RenderableType

from discreet.part import to_plain
from discreet.planning.curves.number_tables import format_whole, number_table
from discreet.planning.curves.sweep_panels import sweep_panel
from discreet.planning.theory.pfl_client_count import (
    UNBIASED_NOTE,
    ClientCount,
    evaluate_client_count,
    examples_per_client,
)
from discreet.planning.theory.pfl_local_epochs import Training
from discreet.privacy.wording import compact, round_down, round_up
from discreet.report.curves import Panel, Picture
from discreet.report.number_format import format_count

SUMS_NOTE = (
    "Shared noise protects against observers who see only sums, for one step per round or gradients at the broadcast "
    "model; see discreet tradeoff cohort"
)
SPREAD_NOTE = (
    "The utility takes the spread of clients' models to be the noise alone: differing batches and data would add to it"
)
POOL_NOTE = (
    "Clients who share one training set have fewer examples each: the same ε takes more noise, and an epoch has fewer "
    "steps"
)
NOTES = (SPREAD_NOTE, UNBIASED_NOTE, SUMS_NOTE, POOL_NOTE)
HEADINGS = ("k", "examples", "noise", "mean: local", "shared", "utility: printed", "corrected")
X_LABEL = "clients, k"
NOTHING = "–"


@dataclass(frozen=True)
class ClientsTradeoff:
    """One row for every number of clients k.

    Attributes:
        training: The training of one client; its `clients` is not used.
        counts: Every k.
        loss: The excess loss at which the utility is asked.
        bias: The norm of the error in the mean of the models.
        pool: The examples that all clients share in the rows of `sharing`.
    """

    training: Training
    counts: Sequence[int]
    epsilon: float
    delta: float
    loss: float
    bias: float
    pool: int

    @cached_property
    def own_rows(self) -> list[ClientCount]:
        """The rows where each client has examples of its own."""
        return [self._evaluate(replace(self.training, clients=clients)) for clients in self.counts]

    @cached_property
    def pool_rows(self) -> list[ClientCount]:
        """The rows where the clients share the pool."""
        shares = {clients: examples_per_client(self.pool, clients) for clients in self.counts}
        return [self._evaluate(replace(self.training, clients=k, examples=share)) for k, share in shares.items()]

    def _evaluate(self, training: Training) -> ClientCount:
        return evaluate_client_count(training, self.epsilon, self.delta, self.loss, self.bias)

    def data(self) -> dict[str, Any]:
        return {
            "training": {name: value for name, value in to_plain(self.training).items() if name != "clients"},
            "epsilon": self.epsilon,
            "delta": self.delta,
            "unit": "example",
            "relation": "zero_out",
            "loss": self.loss,
            "bias": self.bias,
            "pool": self.pool,
            "own_examples": [_describe_row(row) for row in self.own_rows],
            "shared_pool": [_describe_row(row) for row in self.pool_rows],
            "notes": [f"{note}." for note in NOTES],
        }

    def page(self) -> Iterator[RenderableType]:
        yield (
            f"k clients of PFL (Bhaskar et al. 2025), each with ε = {compact(self.epsilon)} at "
            f"δ = {compact(self.delta)} for any one example; "
            f"{format_count(self.training.epochs, 'epochs')} in all, one per round."
        )
        yield ""
        yield f"Each with {format_count(self.training.examples, 'examples')} of its own:"
        yield number_table(HEADINGS, map(_cells, self.own_rows))
        yield ""
        yield f"Sharing {self.pool:,} examples:"
        yield number_table(HEADINGS, map(_cells, self.pool_rows))
        yield ""
        yield (
            "Noise of the mean, in units of the clip norm: local, where each client adds enough noise by itself (PFL); "
            f"shared, where only the sum has enough. {SUMS_NOTE}."
        )
        yield (
            f"Utility: a lower bound on the probability that the mean after a round is within {compact(self.loss)} of "
            "the best loss. The printed form takes a model to have one parameter. A dash means that the bound says "
            "nothing."
        )
        yield from (f"{note}." for note in (SPREAD_NOTE, POOL_NOTE, UNBIASED_NOTE))

    def picture(self) -> Picture:
        own_examples = f"{self.training.examples:,} examples each"
        utility = sweep_panel(
            f"Theorem 3, {own_examples}",
            (X_LABEL, f"least probability to be within {compact(self.loss)}"),
            self.own_rows,
            _clients,
            {
                "printed: one parameter": lambda row: max(0.0, row.printed_utility),
                "corrected": lambda row: max(0.0, row.corrected_utility),
            },
            dashed=("printed: one parameter",),
            log_x=True,
        )
        return Picture(
            title=f"PFL: more clients at ε = {compact(self.epsilon)} each",
            panels=(
                utility,
                _noise_panel(f"Noise of the mean, {own_examples}", self.own_rows),
                _noise_panel(f"Noise of the mean, {self.pool:,} examples in all", self.pool_rows),
            ),
            notes=tuple(f"{note}." for note in NOTES),
        )


def _clients(row: ClientCount) -> float:
    return row.clients


def _noise_panel(title: str, rows: Sequence[ClientCount]) -> Panel:
    return sweep_panel(
        title,
        (X_LABEL, "standard deviation per coordinate, in clips"),
        rows,
        _clients,
        {"local: z/√k": lambda row: row.local_noise, "shared: z/k": lambda row: row.shared_noise},
        log_x=True,
        log_y=True,
    )


def _cells(row: ClientCount) -> tuple[str, ...]:
    return (
        format_whole(row.clients),
        format_whole(row.examples),
        round_up(row.noise_multiplier),
        compact(row.local_noise, 4),
        compact(row.shared_noise, 4),
        round_down(row.printed_utility, 6) if row.printed_utility > 0 else NOTHING,
        round_down(row.corrected_utility) if row.valid else NOTHING,
    )


def _describe_row(row: ClientCount) -> dict[str, Any]:
    return {
        "clients": row.clients,
        "examples": row.examples,
        "noise_multiplier": row.noise_multiplier,
        "mean_noise": {"local": row.local_noise, "shared": row.shared_noise},
        "utility": {
            "printed": row.printed_utility,
            "corrected": row.corrected_utility,
            "valid": row.valid,
            "reason": row.reason,
        },
    }
