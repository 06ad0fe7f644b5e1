"""A whole data set in its own order, before anybody holds a part of it: what features are computed from, once."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from discreet.data.federation import Federation
from discreet.data.partition import AnyPartition, Labels
from discreet.data.tasks.task import Kind, Task, split_held_out, training_size
from discreet.errors import InvalidInput


@dataclass(frozen=True, eq=False)
class Examples:
    """`groups` says whose each training example is, as a number into `group_names`, where the data set knows.

    `label` is what a target is called. `public` are inputs and targets that are nobody's. With a `test_fraction` the
    test examples are dealt out with the others, and this share of each client's is then held out to test on.
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
    test_fraction: float | None = None

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

    def build_task(self, clients: int | None, partition: AnyPartition, generator: torch.Generator) -> Task:
        """The task, once examples are dealt out; what clients hold is not copied, so they may overlap for free."""
        whole = self if self.test_fraction is None else self._merge_test_examples(partition)
        split = partition.split(Labels(whole.targets, whole.groups, whole.group_names), clients, generator)
        sizes, order = tuple(map(len, split.parts)), torch.cat(split.parts)
        test_inputs, test_targets = whole.test_inputs, whole.test_targets
        if self.test_fraction is not None:
            kept, test = split_held_out(sizes, self.test_fraction, generator)
            sizes = tuple(training_size(size, self.test_fraction) for size in sizes)
            test_inputs, test_targets = whole.inputs[order[test]], whole.targets[order[test]]
            order = order[kept]
        most = int(torch.bincount(order, minlength=len(whole.targets)).max())
        return Task(
            name=self.name,
            train=Federation(whole.inputs, whole.targets, sizes, max_multiplicity=most, order=order),
            test_inputs=test_inputs,
            test_targets=test_targets,
            kind=self.kind,
            classes=self.classes,
            client_names=split.names or tuple(f"client {number}" for number in range(len(sizes))),
            facts=(*self.facts, *_describe_test_split(self.test_fraction), *_describe_overlap(most)),
            not_covered=(*self.not_covered, *_disclose_partition(partition, self.label)),
            public=None if self.public is None else Federation(*self.public, (len(self.public[1]),)),
        )

    def _merge_test_examples(self, partition: AnyPartition) -> "Examples":
        """With the test examples after the others, for everybody to hold."""
        if self.groups is not None:
            raise InvalidInput(
                f"Whose {self.name}'s test examples are is not known, so they can't be dealt out with the others.",
                fix="Leave out test_fraction, or what loads whose each example is.",
            )
        if not partition.is_disjoint:
            raise InvalidInput(
                "Where clients overlap, what one holds out another trains on.",
                fix='Leave out test_fraction, or use a disjoint partition such as "iid".',
            )
        return replace(
            self,
            inputs=torch.cat([self.inputs, self.test_inputs]),
            targets=torch.cat([self.targets, self.test_targets]),
        )


def _describe_test_split(fraction: float | None) -> tuple[str, ...]:
    if fraction is None:
        return ()
    return (
        "The official test examples are dealt out with the others, and "
        f"{fraction:.0%} of each client's examples are held out for evaluation.",
    )


def _describe_overlap(most: int) -> tuple[str, ...]:
    if most == 1:
        return ()
    return (f"Clients overlap: one example lies in up to {most} of them, and the guarantee counts all of them.",)


def _disclose_partition(partition: AnyPartition, label: str) -> tuple[str, ...]:
    if not partition.by_label:
        return ()
    return (f"Who holds which examples: they were dealt out by their {label} ({partition.by_label}).",)
