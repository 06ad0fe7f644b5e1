"""What another ε would cost one experiment, in noise, rounds and bytes."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType

from discreet.errors import Unsupported
from discreet.experiment.configuration.experiment_file import Source
from discreet.experiment.terms import Terms
from discreet.part import to_plain
from discreet.planning.curves.number_tables import number_table
from discreet.planning.curves.sweep_panels import geometric_steps, sweep_panel
from discreet.planning.other_promises import Cost, current_cost, format_affordable_rounds, price_promises
from discreet.planning.traffic import planned_traffic
from discreet.privacy.wording import compact, unit_name
from discreet.report.curves import Mark, Panel, Picture, Point
from discreet.report.number_format import format_bytes, format_count

POINTS = 13  # of a curve
BEST_CASE_NOTE = (
    "Noise to signal is that of a round's mean in the best case: every update at the clip norm, all in the same "
    "direction."
)
HEADINGS = ("promised ε", "noise", "times today's", "to signal", "or rounds", "a client's", "of all")


@dataclass(frozen=True)
class PromiseTradeoff:
    """What the experiment promises today, and what each other ε would cost it."""

    source: Source
    terms: Terms
    today: Cost
    costs: tuple[Cost, ...]

    def data(self) -> dict[str, Any]:
        return {
            "promise": to_plain(self.terms.privacy),
            "rounds": self.terms.rounds,
            "clients": self.terms.population.clients,
            "today": self._describe_cost(self.today),
            "costs": [self._describe_cost(cost) for cost in self.costs],
            "notes": [BEST_CASE_NOTE, *self.terms.unknown],
        }

    def page(self) -> Iterator[RenderableType]:
        privacy = self.terms.privacy
        assert privacy is not None
        yield (
            f"{format_count(self.terms.rounds, 'rounds')}, {format_count(self.terms.population.clients, 'clients')}; "
            f"promised today: ε = {compact(self.today.epsilon)} at δ = {compact(privacy.delta)} for one "
            f"{unit_name(privacy.unit)} against the {privacy.against}"
        )
        yield ""
        rows = sorted({self.today, *self.costs}, key=lambda cost: cost.epsilon)
        yield number_table(HEADINGS, map(self._cells, rows))
        yield ""
        yield (
            "Each row is one of two choices: that noise for all rounds, at today's bytes; or that many rounds at "
            "today's noise, with the bytes that one client and all clients are expected to send and receive."
        )
        yield BEST_CASE_NOTE
        yield from self.terms.unknown

    def picture(self) -> Picture:
        """Draw the costs from a quarter of the smallest ε to four times the largest."""
        known = [cost.epsilon for cost in (self.today, *self.costs)]
        grid = geometric_steps(min(known) / 4, max(known) * 4, POINTS)
        swept = list(price_promises(self.source, self.terms, sorted({*grid, *known})))

        def panel(title: str, y_label: str, field: str) -> Panel:
            current = getattr(self.today, field)
            return sweep_panel(
                title,
                ("promised ε", y_label),
                swept,
                lambda cost: cost.epsilon,
                {y_label: lambda cost: math.nan if getattr(cost, field) is None else getattr(cost, field)},
                marks=() if current is None else (Mark("today", Point(self.today.epsilon, current)),),
                log_x=True,
                log_y=True,
            )

        return Picture(
            "What another promise would cost",
            (
                panel("Noise for all rounds", "noise multiplier", "noise_multiplier"),
                panel("Noise to signal", "noise to signal", "noise_to_signal"),
                panel("Or rounds at today's noise", "rounds", "rounds_at_this_noise"),
            ),
            (BEST_CASE_NOTE, *self.terms.unknown),
        )

    def _describe_cost(self, cost: Cost) -> dict[str, Any]:
        traffic = planned_traffic(self.terms, cost.rounds_at_this_noise)
        return {
            **cost._asdict(),
            "times_the_noise": self._noise_ratio(cost),
            "bytes_at_these_rounds": {name: traffic and traffic[name] for name in ("client_expected", "all_total")},
        }

    def _noise_ratio(self, cost: Cost) -> float | None:
        if cost.noise_multiplier is None or self.today.noise_multiplier is None:
            return None
        return cost.noise_multiplier / self.today.noise_multiplier

    def _cells(self, cost: Cost) -> tuple[str, ...]:
        row = self._describe_cost(cost)
        numbers = (cost.noise_multiplier, row["times_the_noise"], cost.noise_to_signal)
        cells = ("-" if number is None else compact(number, 4) for number in numbers)
        sizes = ("-" if size is None else format_bytes(size) for size in row["bytes_at_these_rounds"].values())
        name = f"{compact(cost.epsilon)}{' (today)' if cost == self.today else ''}"
        return (name, *cells, format_affordable_rounds(cost.rounds_at_this_noise), *sizes)


def compute_promise_tradeoff(source: Source, terms: Terms, epsilons: Sequence[float]) -> PromiseTradeoff:
    """Price every ε for the experiment.

    Raises:
        Unsupported: The experiment promises nothing, or clients differ in what they do or are promised.
    """
    if terms.privacy is None:
        raise Unsupported("This experiment promises nothing.", fix="Add a [privacy] table, or use discreet plan.")
    priced = tuple(price_promises(source, terms, epsilons))
    if not priced:
        raise Unsupported(
            "Clients differ in what they do or are promised: there is no one answer.", fix="See discreet plan."
        )
    return PromiseTradeoff(source, terms, current_cost(terms, terms.privacy), priced)
