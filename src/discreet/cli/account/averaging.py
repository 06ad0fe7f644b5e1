"""`discreet account averaging`: what the mean of models trained apart reveals, as claimed and as certified."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table

from discreet.cli.options import COUNT, POSITIVE, PROBABILITY, RATE, needed
from discreet.cli.output import Json, emit
from discreet.part import to_plain
from discreet.privacy.wording import compact, round_up

if TYPE_CHECKING:
    from discreet.planning.theory.heikkila_model_averaging import ModelAverage

LocalEpsilon: TypeAlias = Annotated[
    float | None, typer.Option(click_type=POSITIVE, metavar="E", help="Each model's own epsilon, as the paper counts.")
]
Parties: TypeAlias = Annotated[
    int | None, typer.Option(click_type=COUNT, metavar="N", help="How many models there are, one for each client.")
]
Steps: TypeAlias = Annotated[
    int, typer.Option(click_type=COUNT, metavar="T", show_default=False, help="Of each model; 1 by default.")
]
SamplingRate: TypeAlias = Annotated[
    float,
    typer.Option(
        click_type=RATE, metavar="Q", show_default=False, help="Share of its examples in each step; 1 by default."
    ),
]
Delta: TypeAlias = Annotated[
    float,
    typer.Option(click_type=PROBABILITY, metavar="D", show_default=False, help="What epsilon is for; 1e-5 by default."),
]


@dataclass(frozen=True)
class Answer:
    """What was asked, and what was found."""

    local_epsilon: float
    parties: int
    steps: int
    sampling_rate: float
    delta: float
    found: "ModelAverage"

    def data(self) -> dict[str, Any]:
        found = self.found
        return {
            "epsilon": found.epsilon,
            "delta": self.delta,
            "unit": "example",
            "relation": "zero_out",
            "view": "public",
            "claimed_epsilon": found.claimed,
            "claim_holds": found.sound,
            "reason": found.reason,
            "sigma_local": found.local_noise,
            "sigma_total": found.total_noise,
            "local_epsilon": self.local_epsilon,
            "parties": self.parties,
            "steps": self.steps,
            "sampling_rate": self.sampling_rate,
            "event": to_plain(found.event),
        }

    def page(self) -> Iterator[RenderableType]:
        found = self.found
        steps = f"{self.steps:,} step{'s' if self.steps > 1 else ''}"
        yield (
            f"The mean of {self.parties:,} model{'s' if self.parties > 1 else ''}, each of {steps}, Poisson sampling "
            f"at rate {compact(self.sampling_rate)}"
        )
        yield f"for any one example or a blank in its place; δ = {compact(self.delta)}"
        yield "against those who see the mean and none of the models"
        yield ""
        table = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False)
        for name in ("", "σ", "ε"):
            table.add_column(name, justify="right" if name else "left")
        table.add_column("", overflow="fold")
        table.add_row("one model", round_up(found.local_noise), compact(self.local_epsilon), "as paper 002 counts")
        holds = "as paper 002 counts" if found.sound else "a claim, not certified"
        table.add_row("the mean", round_up(found.total_noise), round_up(found.claimed), holds)
        certified = found.total_noise if found.sound else found.local_noise
        table.add_row("certified", round_up(certified), round_up(found.epsilon), "by pld", style="bold")
        yield Padding(table, (0, 2))
        yield ""
        yield f"Why: {found.reason}."


def averaging(
    local_epsilon: LocalEpsilon = None,
    parties: Parties = None,
    steps: Steps = 1,
    sampling_rate: SamplingRate = 1.0,
    delta: Delta = 1e-5,
    as_json: Json = False,
) -> None:
    """The mean of models that were trained apart (paper 002)."""
    from discreet.planning.theory.heikkila_model_averaging import evaluate_average

    local, clients = needed("--local-epsilon", local_epsilon), needed("--parties", parties)
    found = evaluate_average(local, clients, steps, sampling_rate, delta)
    answer = Answer(local, clients, steps, sampling_rate, delta, found)
    emit(answer.data, answer.page, as_json=as_json)
