"""A whole data set in its own order, before anybody holds a part of it: what features are computed from, once."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from discreet.errors import InvalidInput
from discreet.federation import Federation
from discreet.partition import AnyPartition, Labels
from discreet.tasks.task import Kind, Task


@dataclass(frozen=True, eq=False)
class Examples:
    """`groups` says whose each training example is, as a number into `group_names`, where the data set knows.

    `label` is what a target is called. `public` are inputs and targets that are nobody's.
    """

    name: str
    inputs: Tensor
    targets: Tensor
    test_inputs: Tensor
    test_targets: Tensor
    kind: Kind
    classes: int
    groups: Tensor | None = None
    group_names: tuple[str, ...] = ()
    label: str = "class label"
    facts: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ()
    public: tuple[Tensor, Tensor] | None = None

    def with_public(self, count: int | None) -> "Examples":
        """The same with the last `count` training examples set apart as public, before anybody gets any.

        Where examples are known to be somebody's, whole groups are set apart, until there are so many: the last ones.
        """
        if count is None:
            return self
        apart = torch.arange(len(self.targets)) >= len(self.targets) - count
        if self.groups is not None:
            sizes = torch.bincount(self.groups, minlength=len(self.group_names))
            later = sizes.flip(0).cumsum(0).flip(0) - sizes  # how many examples the groups after each one have
            apart = (later < count)[self.groups]
        if bool(apart.all()):
            raise InvalidInput(
                f"Of {len(self.targets):,} training examples {count:,} can't be public: that leaves no client any.",
                fix="Lower public_examples.",
            )
        return replace(
            self,
            inputs=self.inputs[~apart],
            targets=self.targets[~apart],
            groups=None if self.groups is None else self.groups[~apart],
            public=(self.inputs[apart], self.targets[apart]),
        )

    def dealt(self, clients: int | None, partition: AnyPartition, generator: torch.Generator) -> Task:
        """The task, once the training examples are dealt out; nothing is copied, so clients may overlap for free."""
        split = partition.split(Labels(self.targets, self.groups, self.group_names), clients, generator)
        sizes, order = tuple(map(len, split.parts)), torch.cat(split.parts)
        most = int(torch.bincount(order, minlength=len(self.targets)).max())
        return Task(
            name=self.name,
            train=Federation(self.inputs, self.targets, sizes, max_multiplicity=most, order=order),
            test_inputs=self.test_inputs,
            test_targets=self.test_targets,
            kind=self.kind,
            classes=self.classes,
            client_names=split.names or tuple(f"client {number}" for number in range(len(sizes))),
            facts=(*self.facts, *_overlap(most)),
            not_covered=(*self.not_covered, *_by_label(partition, self.label)),
            public=None if self.public is None else Federation(*self.public, (len(self.public[1]),)),
        )


def _overlap(most: int) -> tuple[str, ...]:
    if most == 1:
        return ()
    return (f"Clients overlap: one example lies in up to {most} of them, and the guarantee counts all of them.",)


def _by_label(partition: AnyPartition, label: str) -> tuple[str, ...]:
    if not partition.by_label:
        return ()
    return (f"Who holds which examples: they were dealt out by their {label} ({partition.by_label}).",)
