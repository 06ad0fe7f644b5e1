"""The options that every mechanism of `discreet account` has: each field of `Question` is one."""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from typer import Option

from discreet.cli.options import (
    COUNT,
    POSITIVE,
    PROBABILITY,
    RATE,
    RelationWord,
    UnitOption,
    ViewOption,
    number_option,
    parse_relation,
    parse_unit,
)
from discreet.cli.output import Json
from discreet.errors import InvalidInput
from discreet.privacy.events import (
    BestOf,
    Event,
    GaussianNoise,
    Noise,
    PoissonSampled,
    RandomAllocation,
    RandomisedResponse,
    SampledWithoutReplacement,
    TruncatedPoissonSampled,
)
from discreet.privacy.groups import group_event
from discreet.privacy.release import Person, Relation
from discreet.privacy.trial_count import Distribution, named_count

if TYPE_CHECKING:
    from discreet.privacy.calibration import AttackTarget, EpsilonTarget


def _check_curve(path: Path | None) -> Path | None:
    """Refuse a file that can't be drawn or written before anything is computed."""
    if path is None:
        return None
    from discreet.report.privacy_picture import check_curve_path

    return check_curve_path(path)


CurveFile: TypeAlias = Annotated[
    Path | None,
    Option(
        metavar="FILE",
        callback=_check_curve,
        help="Write epsilon at each delta, and the errors of the best test; FILE ends in .csv, .json, .svg, .pdf, .png "
        "or .html. An existing file is replaced.",
    ),
]
SampledStep: TypeAlias = (
    PoissonSampled | SampledWithoutReplacement | TruncatedPoissonSampled | RandomAllocation | RandomisedResponse
)

LARGE_POPULATION = 10**6  # epsilon depends only on cohort / population, so any large population will do

FPR = 0.01  # the false positive rate of an attack target that names none


@dataclass(frozen=True, kw_only=True)
class Question:
    """The options of one `discreet account` command, except those of the mechanism itself."""

    sampling_rate: Annotated[
        float | None, number_option(RATE, "Q", "Share of the units that take part in a step.", default="1")
    ] = None
    steps: Annotated[int | None, number_option(COUNT, "T", "Number of steps.", default="1")] = None
    delta: Annotated[float, number_option(PROBABILITY, "D", "Delta for which epsilon is computed.")] = 1e-5
    epsilon: Annotated[float | None, number_option(POSITIVE, "E", "Target: the largest epsilon allowed.")] = None
    attack_tpr: Annotated[
        float | None, number_option(PROBABILITY, "P", "Target: the largest true positive rate of an attack.")
    ] = None
    fpr: Annotated[
        float | None, number_option(PROBABILITY, "P", "False positive rate of the attack.", default=str(FPR))
    ] = None
    sampling: Annotated[
        Literal["poisson", "without-replacement", "truncated-poisson", "allocation"],
        Option(help="How the units of a step are drawn."),
    ] = "poisson"
    cohort: Annotated[int | None, number_option(COUNT, "M", "Units in a step, instead of --sampling-rate.")] = None
    population: Annotated[
        int | None, number_option(COUNT, "N", "Number of all units, for --cohort and --max-batch-size.")
    ] = None
    max_batch_size: Annotated[
        int | None, number_option(COUNT, "B", "Units that a step may hold, for --sampling truncated-poisson.")
    ] = None
    bins: Annotated[
        int | None,
        number_option(COUNT, "T", "Sums of a pass, for --sampling allocation; --steps then counts passes."),
    ] = None
    group_size: Annotated[
        int | None,
        number_option(COUNT, "K", "Units that belong to one person and are protected together.", default="1"),
    ] = None
    expected_trials: Annotated[
        float | None,
        number_option(
            POSITIVE, "K", "Mean of a secret random number of trials, of which only the best is released.", default="1"
        ),
    ] = None
    trials: Annotated[Distribution, Option(help="Distribution of that number of trials.")] = "geometric"
    relation: Annotated[
        RelationWord | None,
        Option(
            show_default="replace for answers and sampling without replacement, which allow no other; else "
            "add-or-remove",
            help="Which data sets are neighbours.",
        ),
    ] = None
    check: Annotated[bool, Option("--check", help="Confirm the result with dp-accounting; takes a second.")] = False
    card: Annotated[bool, Option("--card", help="Add the guarantee card for --unit and --view.")] = False
    curve: CurveFile = None
    unit: UnitOption = "example"
    view: ViewOption = "server"
    as_json: Json = False

    @property
    def rate(self) -> float | None:
        """The sampling rate, from --sampling-rate, --cohort and --population, or --bins. None if none is given."""
        self._check_sampling()
        if self.sampling == "allocation":
            return 1 / (self.bins or 1)
        if self.cohort is None:
            if self.population is not None and self.sampling == "poisson":
                raise InvalidInput("--population needs --cohort, or --sampling without-replacement.")
            return self.sampling_rate
        if self.population is None or self.sampling_rate is not None:
            raise InvalidInput("--cohort needs --population, and takes the place of --sampling-rate.")
        if self.cohort > self.population:
            raise InvalidInput(f"--cohort must be at most the population, {self.population}, and got {self.cohort}.")
        return self.cohort / self.population

    def _check_sampling(self) -> None:
        """Refuse options that belong to another way of sampling."""
        if self.sampling == "allocation" and (self.bins is None or self.sampling_rate is not None or self.cohort):
            raise InvalidInput("--sampling allocation needs --bins, which takes the place of --sampling-rate.")
        if self.sampling != "allocation" and self.bins is not None:
            raise InvalidInput("--bins needs --sampling allocation.")
        truncates = self.sampling == "truncated-poisson"
        if truncates and (self.max_batch_size is None or self.population is None):
            raise InvalidInput("--sampling truncated-poisson needs --max-batch-size and --population.")
        if not truncates and self.max_batch_size is not None:
            raise InvalidInput("--max-batch-size needs --sampling truncated-poisson.")

    @property
    def neighbours(self) -> Relation:
        """The neighbouring relation, with the default that belongs to the sampling."""
        if self.sampling != "without-replacement":
            return parse_relation(self.relation or "add-or-remove")
        if self.relation not in (None, "replace"):
            raise InvalidInput(
                f"--relation {self.relation} can't be used with cohorts of a fixed size: one unit more or less changes "
                "which other units are drawn.",
                fix="Use --relation replace.",
            )
        return "replace"

    def target(self) -> "EpsilonTarget | AttackTarget | None":
        """Return the target to meet. None if the mechanism is to be accounted for as it is."""
        from discreet.privacy.calibration import AttackTarget, EpsilonTarget

        if self.epsilon is not None and self.attack_tpr is not None:
            raise InvalidInput("--epsilon and --attack-tpr are two targets.", fix="Use one of them.")
        if self.fpr is not None and self.attack_tpr is None:
            raise InvalidInput("--fpr needs --attack-tpr, which is missing.")
        if self.epsilon is not None:
            return EpsilonTarget(epsilon=self.epsilon, delta=self.delta)
        if self.attack_tpr is not None:
            fpr = FPR if self.fpr is None else self.fpr
            return AttackTarget(true_positive_rate=self.attack_tpr, false_positive_rate=fpr)
        return None

    @property
    def group_rows(self) -> int:
        """How many units are protected together: --group-size, or all rows of the person of --unit, in one sum."""
        unit = parse_unit(self.unit)
        rows = unit.rows if isinstance(unit, Person) else 1
        if isinstance(unit, Person) and self.group_size not in (None, rows):
            raise InvalidInput(
                f"--group-size {self.group_size} and --unit {self.unit} name two numbers of rows.",
                fix="Leave --group-size out.",
            )
        return self.group_size or rows

    def protected_event(self, event: Event) -> Event:
        """Return the event for all units that are protected together, and for the best trial if there are several."""
        if self.expected_trials is not None:
            count = named_count(self.trials, self.expected_trials)
            return BestOf(count=count, trials=(self._grouped_event(event),))
        return self._grouped_event(event)

    def _grouped_event(self, event: Event) -> Event:
        if self.group_rows == 1:
            return event
        if self.neighbours == "replace":
            raise InvalidInput(
                "Several rows of one person can't be counted under --relation replace, only for adding, removing or "
                "blanking them.",
                fix="Use --relation add-or-remove or zero-out.",
            )
        return group_event(event, self.group_rows)

    def sampled_event(self, noise: Noise | RandomisedResponse, rate: float) -> SampledStep:
        """Return the event of one step: the noise on units that are sampled at this rate."""
        if isinstance(noise, RandomisedResponse):
            if rate != 1 or self.sampling != "poisson":
                raise InvalidInput("Randomised response can't be sampled here: every unit answers in every step.")
            return noise
        if self.sampling == "poisson":
            return PoissonSampled(sampling_rate=rate, event=noise)
        if self.sampling == "allocation":
            if not isinstance(noise, GaussianNoise):
                raise InvalidInput(f"--sampling allocation needs Gaussian noise, and got {noise.kind}.")
            return RandomAllocation(bins=self.bins or 1, event=noise)
        if self.sampling == "truncated-poisson":
            return TruncatedPoissonSampled(
                sampling_rate=rate,
                max_batch_size=self.max_batch_size or 1,
                population=self.population or 1,
                event=noise,
            )
        cohort, population = self._cohort_of_rate(rate)
        return SampledWithoutReplacement(cohort=cohort, population=population, event=noise)

    def _cohort_of_rate(self, rate: float) -> tuple[int, int]:
        """Return a cohort and a population whose ratio is the rate, and never smaller than a rate that was given."""
        if self.sampling_rate is not None and self.population is None:
            exact = Fraction(str(rate))  # 0.1 is exactly 1 in 10
            if rate < 1e-9:
                raise InvalidInput(
                    f"The sampling rate of cohorts of a fixed size must be at least 1e-9, and got {rate:g}."
                )
            near = exact.limit_denominator(10**12)
            return (near if near >= exact else near + Fraction(1, near.denominator)).as_integer_ratio()
        population = self.population or LARGE_POPULATION
        return max(1, round(rate * population)), population
