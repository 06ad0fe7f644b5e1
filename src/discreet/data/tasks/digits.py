"""The built-in task: 1,797 handwritten digits of 8 by 8 pixels, which the package includes: no download is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np

from discreet.algorithms.population import Population
from discreet.data.data_facts import DataFacts
from discreet.data.partition import AnyPartition, Iid
from discreet.data.partition_contract import check_client_count
from discreet.data.tasks.examples import Examples
from discreet.data.tasks.task import Task, describe_validation, training_size
from discreet.errors import InvalidInput
from discreet.extras import missing_library
from discreet.lazy_torch import torch
from discreet.part import Count, Probability, Share, part
from discreet.paths import Paths
from discreet.words import fill

FILE = Path(__file__).parents[1] / "datasets" / "optical_digits.npz"
EXAMPLES = 1797
WHITE = 16.0  # the format's largest pixel value
CENTRE = 0.3


@part
class Digits:
    """Ten classes; each example has 64 pixels.

    Attributes:
        clients: Number of clients.
        partition: How examples are assigned to clients.
        test_fraction: The share of all examples that is held out for evaluation.
        validation_fraction: The share of each client's training examples that is held out for choosing settings.
        public_examples: Number of examples that are public and belong to no client.
    """

    kind: Literal["digits"] = "digits"
    clients: Count = 10
    partition: AnyPartition = Iid()
    test_fraction: Probability = 0.2
    validation_fraction: Share = 0.0
    public_examples: Count | None = None

    def load(self, generator: torch.Generator, paths: Paths) -> Task:
        """Read the digits, hold out some at random, and assign the others to clients."""
        with np.load(FILE) as digits:
            pixels, labels = (torch.from_numpy(digits[name]) for name in ("pixels", "labels"))
        inputs, labels = (pixels.double() / WHITE - CENTRE).to(torch.float32), labels.to(torch.int64)
        order = torch.randperm(len(labels), generator=generator)
        test, train = order[: self._test_size], order[self._test_size :]
        examples = Examples(
            name="digits",
            inputs=inputs[train],
            targets=labels[train],
            test_inputs=inputs[test],
            test_targets=labels[test],
            kind="classification",
            classes=10,
            facts=_describe_data(),
        )
        examples = examples.with_public(self.public_examples)
        return examples.build_task(self.clients, self.partition, generator, self.validation_fraction)

    def describe(self) -> tuple[Population, DataFacts]:
        """Return the client sizes, and what cards say about the data: what a plan needs, without torch.

        Raises:
            MissingExtra: The partition draws sizes at random, for which torch is needed and not installed.
        """
        if not isinstance(self.partition, Iid):
            raise missing_library("torch", f"Counting the examples of the partition {self.partition.kind!r}")
        count = EXAMPLES - self._test_size - (self.public_examples or 0)
        least, more = divmod(count, check_client_count(self.clients, count))
        dealt = (least + (client < more) for client in range(self.clients))
        sizes = tuple(training_size(size, self.validation_fraction) for size in dealt)
        has_validation = self.validation_fraction > 0
        data = DataFacts(
            kind="classification",
            facts=(*_describe_data(), *([describe_validation(self.validation_fraction)] if has_validation else [])),
            not_covered=(),
            ranges_from_data=False,
            distinct_examples=sum(sizes),
            is_dealt=True,
            public_examples=self.public_examples,
            has_validation=has_validation,
        )
        return Population(examples=sizes), data

    @property
    def _test_size(self) -> int:
        """The number of examples that are held out."""
        size = int(EXAMPLES * self.test_fraction)
        if not size or EXAMPLES - size < self.clients:
            raise InvalidInput(
                f"The digits are {EXAMPLES:,} examples: a test fraction of {self.test_fraction} leaves {size} "
                f"to test on and {EXAMPLES - size} for {self.clients} clients.",
                fix="Every client needs an example, and so does the test.",
            )
        return size


def _describe_data() -> tuple[str, ...]:
    return fill("data.digits.public"), fill("data.digits.pixels", white=f"{WHITE:g}", centre=f"{CENTRE:g}")
