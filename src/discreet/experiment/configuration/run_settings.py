"""The settings of a run: written once, and read from an experiment's file and from the keywords of `train`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypedDict

from discreet.client_layers.precision import GradientPrecision
from discreet.engines.engine_table import AnyEngine, Embedded
from discreet.experiment.tracking.any_tracker import AnyTracker
from discreet.part import Count, Flag, Index, part

Device: TypeAlias = Literal["auto", "cpu", "cuda"]
Precision: TypeAlias = Literal["float32", "float64"]
WITHOUT_EFFECT_ON_NUMBERS = (
    "checkpoint_every",
    "track",
)  # a comparison reuses a run's result whatever these settings are


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """How a run is made and observed. Nothing here changes what is promised.

    Attributes:
        rounds: Number of rounds.
        seed: Makes the run repeatable; its noise then protects nobody.
        engine: What computes the sum of a cohort.
        evaluate_every: Rounds between two evaluations on test data. None evaluates about twenty times in a run.
        evaluate_training: Whether to evaluate on training examples too, to see the gap. No guarantee covers either.
        checkpoint_every: Rounds between two checkpoints, from which a stopped run can be resumed.
        track: Where the numbers of each round are also written: files, TensorBoard or MLflow.
        dtype: Precision of the training.
        precision: Precision of the products inside gradients on a GPU: tensor cores compute them in "tf32" or "bf16".
            Clips, sums and noise are as in "float32".
        compile: Compile local steps (torch's inductor): a step takes less time, and the first ones up to minutes. The
            last bits differ from those without it.
        device: Where to train. "auto" takes a GPU if there is one.
    """

    rounds: Count
    seed: Index | None = None
    engine: AnyEngine = Embedded()  # noqa: RUF009 - a frozen record
    evaluate_every: Count | None = None
    evaluate_training: Flag = False
    checkpoint_every: Count = 1
    track: tuple[AnyTracker, ...] = ()
    dtype: Precision = "float32"
    precision: GradientPrecision = "float32"
    compile: Flag = False
    device: Device = "auto"

    def is_evaluated(self, completed: int) -> bool:
        """Whether the model is evaluated after so many completed rounds. The last round always is."""
        return completed == self.rounds or completed % self.rounds_between_evaluations == 0

    @property
    def rounds_between_evaluations(self) -> int:
        """The rounds between two evaluations: `evaluate_every`, or as many as give about twenty evaluations."""
        return self.evaluate_every or max(1, self.rounds // 20)


@part
class Settings(RunSettings):
    """The settings of a run that a Python program starts."""


class SettingKeywords(TypedDict, total=False):
    """The settings that `train` takes as keywords, for type checkers; a test compares them with `RunSettings`."""

    seed: int | None
    engine: AnyEngine
    evaluate_every: int | None
    evaluate_training: bool
    checkpoint_every: int
    track: Sequence[AnyTracker | Mapping[str, Any]]
    dtype: Precision
    precision: GradientPrecision
    compile: bool
    device: Device
