"""`discreet account averaging`: what the mean of independently trained models reveals, claimed and certified."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import RenderableType
from rich.padding import Padding

from discreet.cli.options import COUNT, POSITIVE, PROBABILITY, RATE, expand_records, number_option
from discreet.cli.output import Json, emit
from discreet.cli.text_table import text_table
from discreet.part import to_plain
from discreet.privacy.wording import compact, round_up
from discreet.report.number_format import format_count

if TYPE_CHECKING:
    from discreet.planning.theory.heikkila_model_averaging import ModelAverage

PAPER = "as Heikkilä (2025) counts"


@dataclass(frozen=True, kw_only=True)
class AveragingQuestion:
    """The options of the command, and its answer."""

    local_epsilon: Annotated[float, number_option(POSITIVE, "E", "Epsilon of each model, as the paper counts it.")]
    parties: Annotated[int, number_option(COUNT, "N", "Number of models, one for each client.")]
    steps: Annotated[int, number_option(COUNT, "T", "Number of training steps of each model.")] = 1
    sampling_rate: Annotated[float, number_option(RATE, "Q", "Share of a client's examples in each step.")] = 1.0
    delta: Annotated[float, number_option(PROBABILITY, "D", "Delta for which epsilon is computed.")] = 1e-5

    @cached_property
    def result(self) -> "ModelAverage":
        """What the theory says about it."""
        from discreet.planning.theory.heikkila_model_averaging import evaluate_average

        return evaluate_average(self.local_epsilon, self.parties, self.steps, self.sampling_rate, self.delta)

    def data(self) -> dict[str, Any]:
        result = self.result
        return {
            "epsilon": result.epsilon,
            "unit": "example",
            "relation": "zero_out",
            "view": "public",
            "claimed_epsilon": result.claimed_epsilon,
            "claim_holds": result.is_sound,
            "reason": result.reason,
            "sigma_local": result.local_noise,
            "sigma_total": result.total_noise,
            **asdict(self),
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


@expand_records
def averaging(question: AveragingQuestion, as_json: Json = False) -> None:
    """Mean of independently trained models (Heikkilä 2025)."""
    emit(question.data, lambda: list(question.page()), as_json=as_json)  # an error prints no part of the page
