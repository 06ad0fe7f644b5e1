"""`discreet tradeoff promise`: what another ε would cost an experiment, in noise, rounds and bytes."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer
from rich.console import RenderableType

from discreet.cli.formatting import format_affordable_rounds, format_bytes
from discreet.cli.options import DataDir, Overrides
from discreet.cli.output import Json, emit
from discreet.cli.progress_bar import show_preparation
from discreet.cli.tradeoff.picture_option import PictureFile, drawn
from discreet.cli.tradeoff.sweep_rows import POSITIVES, counted, table
from discreet.errors import Unsupported
from discreet.part import to_plain
from discreet.privacy.wording import compact, unit_name

if TYPE_CHECKING:
    from discreet.experiment.configuration.experiment_file import Source
    from discreet.experiment.loop.job import Job
    from discreet.planning.other_promises import Cost
    from discreet.report.curves import Panel, Picture

POINTS = 13  # of a curve
BEST_CASE = "Noise to signal is in a round's mean, at best: with everything at the clip, and all clients agreed."

File: TypeAlias = Annotated[Path | None, typer.Argument(metavar="[FILE]", hidden=True)]
Epsilons: TypeAlias = Annotated[
    Sequence[float],
    typer.Option(click_type=POSITIVES, metavar="E,...", show_default=False, help="0.5,1,2,4 by default."),
]


@dataclass(frozen=True)
class Answer:
    """What the experiment promises today, and what each ε would cost it."""

    source: "Source"
    job: "Job"
    today: "Cost"
    costs: tuple["Cost", ...]

    def data(self) -> dict[str, Any]:
        return {
            "promise": to_plain(self.job.privacy),
            "rounds": self.job.rounds,
            "clients": self.job.population.clients,
            "today": self._row(self.today),
            "costs": [self._row(each) for each in self.costs],
            "notes": [BEST_CASE],
        }

    def page(self) -> Iterator[RenderableType]:
        privacy = self.job.privacy
        assert privacy is not None
        yield (
            f"{counted(self.job.rounds, 'round')}, {counted(self.job.population.clients, 'client')}; promised today: "
            f"ε = {compact(self.today.epsilon)} at δ = {compact(privacy.delta)} for one {unit_name(privacy.unit)} "
            f"against the {privacy.against}"
        )
        yield ""
        yield table(HEADINGS, map(self._cells, sorted({self.today, *self.costs}, key=lambda each: each.epsilon)))
        yield ""
        yield (
            "Either the noise, over all rounds, at today's bytes; or the rounds, at today's noise, with the bytes that "
            "a client and all of them are then expected to send and get."
        )
        yield BEST_CASE

    def picture(self) -> "Picture":
        """The same as curves, from a quarter of the least ε to four times the largest."""
        from discreet.planning.other_promises import costs
        from discreet.report.curves import Mark, Panel, Picture, Point, curve

        known = [each.epsilon for each in (self.today, *self.costs)]
        low, high = min(known) / 4, max(known) * 4
        grid = {low * (high / low) ** (place / (POINTS - 1)) for place in range(POINTS)}
        found = list(costs(self.source, self.job, sorted(grid | set(known))))

        def panel(title: str, up: str, now: float | None, values: Mapping[float, float | None]) -> "Panel":
            return Panel(
                title,
                "promised ε",
                up,
                (curve(up, list(values), [math.nan if each is None else each for each in values.values()]),),
                marks=() if now is None else (Mark("today", Point(self.today.epsilon, now)),),
                log_x=True,
                log_y=True,
            )

        noise = {each.epsilon: each.noise_multiplier for each in found}
        loudness = {each.epsilon: each.noise_to_signal for each in found}
        rounds = {each.epsilon: each.rounds_at_this_noise for each in found}
        return Picture(
            "What another promise would cost",
            (
                panel("Noise for all rounds", "noise multiplier", self.today.noise_multiplier, noise),
                panel("How loud it is", "noise to signal", self.today.noise_to_signal, loudness),
                panel("Or rounds at today's noise", "rounds", self.today.rounds_at_this_noise, rounds),
            ),
            (BEST_CASE,),
        )

    def _row(self, cost: "Cost") -> dict[str, Any]:
        from discreet.planning.experiment_plan import sent

        over = sent(self.job, cost.rounds_at_this_noise)
        return {
            **cost._asdict(),
            "times_the_noise": self._times(cost),
            "bytes_at_these_rounds": {name: over[name] for name in ("client_expected", "all_total")},
        }

    def _times(self, cost: "Cost") -> float | None:
        if cost.noise_multiplier is None or self.today.noise_multiplier is None:
            return None
        return cost.noise_multiplier / self.today.noise_multiplier

    def _cells(self, cost: "Cost") -> tuple[str, ...]:
        row = self._row(cost)
        numbers = (cost.noise_multiplier, row["times_the_noise"], cost.noise_to_signal)
        shown = ("-" if each is None else compact(each, 4) for each in numbers)
        sizes = (format_bytes(each) for each in row["bytes_at_these_rounds"].values())
        name = f"{compact(cost.epsilon)}{' (today)' if cost == self.today else ''}"
        return (name, *shown, format_affordable_rounds(cost.rounds_at_this_noise), *sizes)


HEADINGS = ("promised ε", "noise", "times today's", "to signal", "or rounds", "a client's", "of all")


def promise(
    file: File = None,
    epsilon: Epsilons = (0.5, 1.0, 2.0, 4.0),
    settings: Overrides = None,
    data_dir: DataDir = None,
    picture: PictureFile = None,
    as_json: Json = False,
) -> None:
    """What another epsilon would cost the experiment in FILE.

    The noise that each takes over all rounds and how loud it is, or the rounds that today's noise affords, and their
    bytes. Data is read to count clients; nothing is trained or spent. Without FILE: the built-in experiment on digits.
    """
    from discreet import api
    from discreet.experiment.configuration import experiment_file
    from discreet.planning.other_promises import costs, today

    source = experiment_file.load_experiment(file, tuple(settings or ()), data_dir)
    with show_preparation(source, quiet=as_json) as ready:
        job = api.prepare_job(ready)
    if job.privacy is None:
        raise Unsupported("This experiment promises nothing.", fix="Add a [privacy] table, or use discreet plan.")
    found = tuple(costs(source, job, epsilon))
    if not found:
        raise Unsupported(
            "Clients differ in what is done or promised: there is no one answer.", fix="See discreet plan."
        )
    answer = Answer(source, job, today(job, job.privacy), found)
    drawn(answer.picture, picture)
    emit(answer.data, answer.page, as_json=as_json)
