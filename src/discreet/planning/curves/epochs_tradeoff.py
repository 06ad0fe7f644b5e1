"""Local epochs against rounds: what PFL (Bhaskar et al. 2025) proves about splitting a number of epochs into rounds."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rich.console import RenderableType

from discreet.part import to_plain
from discreet.planning.curves.number_tables import format_whole, number_table
from discreet.planning.curves.sweep_panels import sweep_panel
from discreet.planning.theory import pfl_local_epochs
from discreet.planning.theory.pfl_local_epochs import BEST_EPOCHS_NOTE, TOTAL_COST_NOTE, Split, Training
from discreet.privacy.wording import compact, round_up
from discreet.report.curves import Panel, Picture
from discreet.report.number_format import format_count

HEADINGS = ("E", "R", "ε of one round", "by ε/√R", "Theorem 2, one round", "corrected", "all rounds", "noise")


@dataclass(frozen=True)
class EpochsTradeoff:
    """One row for every number of local epochs E that divides the total.

    Attributes:
        epsilon: The ε of all epochs together, at `delta`.
    """

    training: Training
    epsilon: float
    delta: float

    @cached_property
    def noise_multiplier(self) -> float:
        """The least noise that keeps ε; the same for every E."""
        return pfl_local_epochs.calibrate_noise(self.training, self.epsilon, self.delta)

    @cached_property
    def splits(self) -> list[Split]:
        """The rows, by increasing E."""
        return list(pfl_local_epochs.split_epochs(self.training, self.noise_multiplier, self.epsilon, self.delta))

    @property
    def whole_run(self) -> float:
        """The bound of Theorem 2's proof for the released mean after all rounds."""
        return pfl_local_epochs.theorem2_whole_run(self.training, self.noise_multiplier)

    @property
    def whole_noise(self) -> float:
        """The expected norm of the noise in that mean."""
        training = self.training
        return pfl_local_epochs.expected_noise_norm(training, self.noise_multiplier, training.steps, training.clients)

    def data(self) -> dict[str, Any]:
        return {
            "training": to_plain(self.training),
            "epsilon": self.epsilon,
            "delta": self.delta,
            "unit": "example",
            "relation": "zero_out",
            "noise_multiplier": self.noise_multiplier,
            "sampling_rate": self.training.sampling_rate,
            "steps_per_epoch": self.training.steps_per_epoch,
            "splits": [_describe_split(split) for split in self.splits],
            "whole_run": {"theorem2": self.whole_run, "mean_noise": self.whole_noise},
            "claim": {"best_epochs": 1, "proven": False, "reason": f"{BEST_EPOCHS_NOTE}."},
            "notes": [f"{TOTAL_COST_NOTE}."],
        }

    def page(self) -> Iterator[RenderableType]:
        training = self.training
        yield (
            f"PFL (Bhaskar et al. 2025): {format_count(training.epochs, 'epochs')} of "
            f"{format_count(training.steps_per_epoch, 'steps')} at each of {format_count(training.clients, 'clients')}"
            f"; ε = {compact(self.epsilon)} at δ = {compact(self.delta)} for any one example."
        )
        yield (
            f"Noise multiplier {round_up(self.noise_multiplier)} at every E: the guarantee counts steps, however "
            "they are split into rounds."
        )
        yield ""
        yield number_table(HEADINGS, map(_cells, self.splits))
        yield ""
        if any(not split.valid for split in self.splits):
            yield "* ε/√R is an asymptotic formula, and here it is less than the true cost of a round."
        yield f"{TOTAL_COST_NOTE}."
        yield (
            f"Noise: the expected norm of the noise in the mean of {format_count(training.clients, 'models')} after "
            f"one round. At every E, the noise after all rounds is {compact(self.whole_noise, 4)}, and Theorem 2's "
            f"bound for that mean is {compact(self.whole_run, 4)}."
        )
        yield f"{BEST_EPOCHS_NOTE}."

    def picture(self) -> Picture:
        def panel(title: str, y_label: str, curves: Mapping[str, Callable[[Split], float]], **options: Any) -> Panel:
            axes = ("local epochs per round, E", y_label)
            return sweep_panel(title, axes, self.splits, lambda split: split.epochs, curves, log_x=True, **options)

        cost = panel(
            "Cost of one round",
            "ε of one round alone",
            {"exact": lambda split: split.epsilon, "ε/√R, from the paper": lambda split: split.asymptotic},
            dashed=("ε/√R, from the paper",),
            log_y=True,
        )
        bounds = panel(
            "Theorem 2: upper bound on the loss through privacy",
            "bound on the difference in loss",
            {
                "one round, printed": lambda split: split.printed_bound,
                "one round, corrected": lambda split: split.corrected_bound,
                "sum over all rounds": lambda split: split.rounds * split.printed_bound,
                "all rounds, the mean": lambda split: self.whole_run,
            },
            dashed=("one round, printed", "sum over all rounds"),
            log_y=True,
        )
        noise = panel(
            "Noise in the released mean",
            "expected norm",
            {"after one round": lambda split: split.mean_noise, "after all rounds": lambda split: self.whole_noise},
        )
        return Picture(
            title=f"PFL: {format_count(self.training.epochs, 'epochs')} at ε = {compact(self.epsilon)}, in rounds of E",
            panels=(cost, bounds, noise),
            notes=(f"{TOTAL_COST_NOTE}.", f"{BEST_EPOCHS_NOTE}."),
        )


def _cells(split: Split) -> tuple[str, ...]:
    return (
        format_whole(split.epochs),
        format_whole(split.rounds),
        round_up(split.epsilon),
        f"{'' if split.valid else '* '}{compact(split.asymptotic, 4)}",
        compact(split.printed_bound, 4),
        compact(split.corrected_bound, 4),
        compact(split.rounds * split.printed_bound, 4),
        compact(split.mean_noise, 4),
    )


def _describe_split(split: Split) -> dict[str, Any]:
    return {
        "epochs": split.epochs,
        "rounds": split.rounds,
        "local_steps": split.local_steps,
        "round_epsilon": {
            "exact": split.epsilon,
            "asymptotic": split.asymptotic,
            "valid": split.valid,
            "reason": split.reason,
        },
        "theorem2": {
            "printed": split.printed_bound,
            "corrected": split.corrected_bound,
            "all_rounds": split.rounds * split.printed_bound,
        },
        "noise": {"client": split.client_noise, "mean": split.mean_noise},
    }
