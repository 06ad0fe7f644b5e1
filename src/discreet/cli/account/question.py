"""What can be asked of every mechanism: each field is an option of the command."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Option

from discreet.cli.options import (
    COUNT,
    POSITIVE,
    PROBABILITY,
    RATE,
    RelationWord,
    UnitOption,
    ViewOption,
    parse_relation,
)
from discreet.cli.output import Json
from discreet.errors import InvalidInput
from discreet.privacy.events import Noise, PoissonSampled, SampledWithoutReplacement
from discreet.privacy.release import Relation

if TYPE_CHECKING:
    from discreet.privacy.calibration import AttackTarget, EpsilonTarget

LARGE_POPULATION = 10**6  # only the ratio of cohort to population is priced, so any size that can hold it serves


@dataclass(frozen=True, kw_only=True)
class Question:
    """One line of `discreet account`, apart from the mechanism's own numbers."""

    sampling_rate: Annotated[
        float | None, Option(click_type=RATE, metavar="Q", help="Share of the units in each step; 1 by default.")
    ] = None
    steps: Annotated[int | None, Option(click_type=COUNT, metavar="T", help="How often; 1 by default.")] = None
    delta: Annotated[
        float,
        Option(click_type=PROBABILITY, metavar="D", show_default=False, help="What epsilon is for; 1e-5 by default."),
    ] = 1e-5
    epsilon: Annotated[
        float | None, Option(click_type=POSITIVE, metavar="E", help="Target: the most that epsilon may be.")
    ] = None
    attack_tpr: Annotated[
        float | None, Option(click_type=PROBABILITY, metavar="P", help="Target: the most true positives of an attack.")
    ] = None
    fpr: Annotated[
        float | None,
        Option(click_type=PROBABILITY, metavar="P", help="Its rate of false positives; 0.01 by default."),
    ] = None
    sampling: Annotated[
        Literal["poisson", "without-replacement"],
        Option(metavar="HOW", show_default=False, help="poisson (default), or without-replacement."),
    ] = "poisson"
    cohort: Annotated[
        int | None, Option(click_type=COUNT, metavar="M", help="The sampling rate as M out of --population N.")
    ] = None
    population: Annotated[int | None, Option(click_type=COUNT, metavar="N", help="How many units there are.")] = None
    relation: Annotated[
        RelationWord | None,
        Option(
            metavar="HOW",
            help="add-or-remove (default), zero-out or replace; sampling without replacement has only replace.",
        ),
    ] = None
    check: Annotated[bool, Option("--check", help="Confirm by dp-accounting; a second slower.")] = False
    card: Annotated[bool, Option("--card", help="Add the guarantee card for --unit and --view.")] = False
    unit: UnitOption = "example"
    view: ViewOption = "server"
    as_json: Json = False

    @property
    def rate(self) -> float | None:
        """The sampling rate, however it was written."""
        if self.cohort is None:
            if self.population is not None and self.sampling == "poisson":
                raise InvalidInput("--population needs --cohort, or --sampling without-replacement.")
            return self.sampling_rate
        if self.population is None or self.sampling_rate is not None:
            raise InvalidInput("--cohort needs --population, and takes the place of --sampling-rate.")
        if self.cohort > self.population:
            raise InvalidInput(f"--cohort must be at most the population, {self.population}, and got {self.cohort}.")
        return self.cohort / self.population

    @property
    def neighbours(self) -> Relation:
        if self.sampling == "poisson":
            return parse_relation(self.relation or "add-or-remove")
        if self.relation not in (None, "replace"):
            raise InvalidInput(
                f"Cohorts of fixed size can't be compared by --relation {self.relation}: a unit more or less changes "
                "who else is drawn.",
                fix="Use --relation replace.",
            )
        return "replace"

    def target(self) -> "EpsilonTarget | AttackTarget | None":
        """What has to be met, if anything."""
        from discreet.privacy.calibration import AttackTarget, EpsilonTarget

        if self.epsilon is not None and self.attack_tpr is not None:
            raise InvalidInput("--epsilon and --attack-tpr are two targets.", fix="Give one of them.")
        if self.fpr is not None and self.attack_tpr is None:
            raise InvalidInput("--fpr belongs to --attack-tpr, which is missing.")
        if self.epsilon is not None:
            return EpsilonTarget(epsilon=self.epsilon, delta=self.delta)
        if self.attack_tpr is not None:
            fpr = 0.01 if self.fpr is None else self.fpr
            return AttackTarget(true_positive_rate=self.attack_tpr, false_positive_rate=fpr)
        return None

    def sampled(self, noise: Noise, rate: float) -> PoissonSampled | SampledWithoutReplacement:
        """The noise after the sampling that was asked for, at this rate."""
        if self.sampling == "poisson":
            return PoissonSampled(sampling_rate=rate, event=noise)
        cohort, population = self._drawn(rate)
        return SampledWithoutReplacement(cohort=cohort, population=population, event=noise)

    def _drawn(self, rate: float) -> tuple[int, int]:
        if self.sampling_rate is not None and self.population is None:
            typed = Fraction(str(rate))  # 0.1 is one in ten
            if rate < 1e-9:
                raise InvalidInput(
                    f"A sampling rate of {rate:g} is too small for cohorts of a fixed size; from 1e-9 on."
                )
            near = typed.limit_denominator(10**12)
            # never a smaller rate than was asked for
            return (near if near >= typed else near + Fraction(1, near.denominator)).as_integer_ratio()
        population = self.population or LARGE_POPULATION
        return max(1, round(rate * population)), population


def with_question_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command every field of `Question` as an option, and collect them into one."""
    own = inspect.signature(command, eval_str=True)
    shared = inspect.signature(Question, eval_str=True).parameters
    mine = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in own.parameters.values()
        if parameter.name != "question"
    ]
    parameters = [*mine, *shared.values()]

    @functools.wraps(command)
    def ask(**options: Any) -> None:
        command(Question(**{name: options.pop(name) for name in shared}), **options)

    # these two are what typer reads
    ask.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    ask.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return ask
