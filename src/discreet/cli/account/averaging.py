"""`discreet account averaging`: what the mean of independently trained models reveals, claimed and certified."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from rich.console import RenderableType
from rich.padding import Padding

from discreet.cli.options import COUNT, POSITIVE, PROBABILITY, RATE, number_option
from discreet.cli.output import Json, emit
from discreet.cli.text_table import text_table
from discreet.part import to_plain
from discreet.privacy.wording import compact, round_up
from discreet.report.number_format import format_count

if TYPE_CHECKING:
    from discreet.planning.theory.heikkila_model_averaging import ModelAverage

LocalEpsilon: TypeAlias = Annotated[
    float, number_option(POSITIVE, "E", "Epsilon of each model, as the paper counts it.")
]
Parties: TypeAlias = Annotated[int, number_option(COUNT, "N", "Number of models, one for each client.")]
Steps: TypeAlias = Annotated[int, number_option(COUNT, "T", "Number of training steps of each model.")]
SamplingRate: TypeAlias = Annotated[float, number_option(RATE, "Q", "Share of a client's examples in each step.")]
Delta: TypeAlias = Annotated[float, number_option(PROBABILITY, "D", "Delta for which epsilon is computed.")]

PAPER = "as Heikkilä (2025) counts"


@dataclass(frozen=True)
class Answer:
    """The question, and what the theory says about it."""

    local_epsilon: float
    parties: int
    steps: int
    sampling_rate: float
    delta: float
    result: "ModelAverage"

    def data(self) -> dict[str, Any]:
        result = self.result
        return {
            "epsilon": result.epsilon,
            "delta": self.delta,
            "unit": "example",
            "relation": "zero_out",
            "view": "public",
            "claimed_epsilon": result.claimed_epsilon,
            "claim_holds": result.is_sound,
            "reason": result.reason,
            "sigma_local": result.local_noise,
            "sigma_total": result.total_noise,
            "local_epsilon": self.local_epsilon,
            "parties": self.parties,
            "steps": self.steps,
            "sampling_rate": self.sampling_rate,
            "event": to_plain(result.event),
        }

    def page(self) -> Iterator[RenderableType]:
        result = self.result
        yield (
            f"The mean of {format_count(self.parties, 'models')}, each trained for {format_count(self.steps, 'steps')} "
            f"with Poisson sampling at rate {compact(self.sampling_rate)}"
        )
        yield f"for any one example or a blank in its place; δ = {compact(self.delta)}"
        yield "against those who see the mean and none of the models"
        yield ""
        table = text_table("", "σ", "ε", "", right=("σ", "ε"))
        table.add_row("one model", round_up(result.local_noise), compact(self.local_epsilon), PAPER)
        holds = PAPER if result.is_sound else "a claim, not certified"
        table.add_row("the mean", round_up(result.total_noise), round_up(result.claimed_epsilon), holds)
        certified = result.total_noise if result.is_sound else result.local_noise
        table.add_row("certified", round_up(certified), round_up(result.epsilon), "by pld", style="bold")
        yield Padding(table, (0, 2))
        yield ""
        yield f"Why: {result.reason}."


def averaging(
    local_epsilon: LocalEpsilon,
    parties: Parties,
    steps: Steps = 1,
    sampling_rate: SamplingRate = 1.0,
    delta: Delta = 1e-5,
    as_json: Json = False,
) -> None:
    """Mean of independently trained models (Heikkilä 2025)."""
    from discreet.planning.theory.heikkila_model_averaging import evaluate_average

    result = evaluate_average(local_epsilon, parties, steps, sampling_rate, delta)
    answer = Answer(local_epsilon, parties, steps, sampling_rate, delta, result)
    emit(answer.data, answer.page, as_json=as_json)
