"""A data set whose official test examples go to clients too; each client then holds out some of its own examples."""

from dataclasses import replace
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from discreet.data.features.feature_task import Features
from discreet.data.tasks.any_image_task import AnyImageTask
from discreet.data.tasks.examples import Examples
from discreet.part import Probability, part
from discreet.paths import Paths

AnyMergeable: TypeAlias = Annotated[AnyImageTask | Features, Field(discriminator="kind")]


@part
class MergedSplits:
    """Partition the training and test examples of `of` together, then hold out some examples of each client.

    Evaluation uses all held-out examples together. If clients have equally many, that is the mean over clients.

    Attributes:
        of: The data set. Its `clients` and `partition` apply to all its examples.
        test_fraction: The share of each client's examples that is held out.
    """

    kind: Literal["merged"] = "merged"
    of: AnyMergeable
    test_fraction: Probability = 0.2

    def examples(self, paths: Paths) -> Examples:
        """Read the data set; the split happens when clients get their examples."""
        return replace(self.of.examples(paths), test_fraction=self.test_fraction)
