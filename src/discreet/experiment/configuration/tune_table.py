"""The [tune] table of a file: which settings are searched, in which way, and what the whole search may reveal."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from discreet.errors import InvalidInput
from discreet.part import Count, Flag, Number, Positive, from_plain, part
from discreet.privacy.trial_count import Distribution, TrialCount, named_count

FIXED_TABLES = ("privacy", "seed", "task", "tune")  # what every trial must have in common


@part
class Interval:
    """A number between two ends. Two whole ends give whole numbers.

    Attributes:
        low: The smallest value.
        high: The largest value.
        log: Whether to search evenly on a logarithmic scale.
    """

    low: Number
    high: Number
    log: Flag = False

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise InvalidInput(f"low must be below high, and got {self.low} and {self.high}.")
        if self.log and not self.low > 0:
            raise InvalidInput(f"low must be above 0 on a logarithmic scale, and got {self.low}.")

    @property
    def is_whole(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int)


def _check_choice(value: Any) -> Any:
    if not isinstance(value, str | bool | int | float):
        raise ValueError(f"must be text, a number, true or false, and got {value!r}")
    return value


@part
class Choices:
    """One of several values.

    Attributes:
        choices: The values: text, numbers, true or false.
    """

    choices: Annotated[tuple[Annotated[Any, BeforeValidator(_check_choice)], ...], Field(min_length=1)]


def _read_dimension(given: Any) -> Any:
    if not isinstance(given, Mapping):
        return given
    kind = Choices if "choices" in given else Interval
    try:
        return from_plain(kind, given)
    except InvalidInput as error:
        raise ValueError(str(error).removeprefix(f"{kind.__name__}: ").rstrip(".")) from None


Dimension: TypeAlias = Annotated[Interval | Choices, BeforeValidator(_read_dimension)]


@part
class Tune:
    """A search for good settings, by `discreet tune`. No other command reads this table.

    Attributes:
        mode: "compose" counts every trial, and later trials follow from the scores of earlier ones. "random" draws
            independent trials and releases only the best, which costs less and holds against the public only.
        space: What is searched: a field of this file such as "algorithm.learning_rate", and its values.
        epsilon: The epsilon of the whole search, at the delta of [privacy]; the epsilon there is for one trial.
        metric: What trials are compared by, on validation data.
        score_noise: Deviation of the noise on the number of right predictions. If it is not set, half the root of the
            number of validation examples, and at least five times what one unit can change.
        trials: Number of trials, in the mode "compose".
        sampler: Which sampler of Optuna chooses the next trial, in the mode "compose".
        expected_trials: The mean of the secret number of trials, in the mode "random".
        distribution: The distribution of that number.
        candidates: Number of points of the space among which trials are drawn, in the mode "random".
        public_data: Declares that all data of this file is public, so that nothing is counted.
        public_validation: Declares that the validation examples are public, so that scores need no noise.
    """

    mode: Literal["compose", "random"] = "compose"
    space: Annotated[dict[str, Dimension], Field(min_length=1)]
    epsilon: Positive | None = None
    metric: Literal["accuracy", "loss", "mse"] = "accuracy"
    score_noise: Positive | None = None
    trials: Count = 20
    sampler: Literal["tpe", "random", "grid", "qmc", "gp", "cmaes"] = "tpe"
    expected_trials: Positive = 10.0
    distribution: Distribution = "geometric"
    candidates: Count = 32
    public_data: Flag = False
    public_validation: Flag = False

    def __post_init__(self) -> None:
        for name in self.space:
            if name.partition(".")[0] in FIXED_TABLES:
                raise InvalidInput(
                    f"space: {name} can't be searched: all trials share their task, promise and seed.",
                    fix="Search fields of [algorithm], [model] or the settings of the run.",
                )
        if self.mode == "random" and not self.expected_trials > 1:
            raise InvalidInput(f"expected_trials must be above 1, and got {self.expected_trials:g}.")

    @property
    def is_maximised(self) -> bool:
        """Whether a larger metric is better."""
        return self.metric == "accuracy"

    @property
    def trial_count(self) -> TrialCount:
        """The public distribution from which the secret number of trials is drawn."""
        return named_count(self.distribution, self.expected_trials)
