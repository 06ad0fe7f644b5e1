"""A whole data set in its own order, before its examples are assigned to clients. Features are computed from it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from discreet.data.federation import Federation
from discreet.data.partition import AnyPartition
from discreet.data.partition_contract import Labels
from discreet.data.tasks.task import Kind, Task, split_held_out, training_size
from discreet.errors import InvalidInput
from discreet.lazy_torch import Tensor, torch
from discreet.words import fill


@dataclass(frozen=True, eq=False)
class Examples:
    """All examples of a data set, and what the card says about them.

    Attributes:
        kind: Classification or regression.
        classes: Number of classes; for a regression, number of outputs.
        groups: The group of each training example, as an index into `group_names`. None if the data has no groups.
        label: What a target is called on the card. None for a class label.
        facts: Sentences for the card: how inputs are scaled, and what is public.
        not_covered: Sentences for the card about what the guarantee does not cover.
        public: Inputs and targets that belong to no client.
        test_fraction: Assign the test examples to clients too, and then hold out this share of each client's examples.
            None keeps the test examples as they are.
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
    label: str | None = None
    facts: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ()
    public: tuple[Tensor, Tensor] | None = None
    test_fraction: float | None = None

    def with_public(self, count: int | None) -> Examples:
        """Return a copy in which the last `count` training examples are public and belong to no client.

        If the data has groups, whole groups become public, from the last one on, until there are at least `count`
        examples. None changes nothing.
        """
        if count is None:
            return self
        is_public = torch.arange(len(self.targets)) >= len(self.targets) - count
        if self.groups is not None:
            sizes = torch.bincount(self.groups, minlength=len(self.group_names))
            later = sizes.flip(0).cumsum(0).flip(0) - sizes  # number of examples in the groups after each group
            is_public = (later < count)[self.groups]
        if bool(is_public.all()):
            raise InvalidInput(
                f"Of {len(self.targets):,} training examples {count:,} can't be public: clients would have none.",
                fix="Lower public_examples.",
            )
        return replace(
            self,
            inputs=self.inputs[~is_public],
            targets=self.targets[~is_public],
            groups=None if self.groups is None else self.groups[~is_public],
            public=(self.inputs[is_public], self.targets[is_public]),
        )

    def build_task(
        self,
        clients: int | None,
        partition: AnyPartition,
        generator: torch.Generator,
        validation_fraction: float = 0.0,
    ) -> Task:
        """Assign the examples to clients, and hold out validation examples of each client.

        Clients share the tensors, so overlapping clients need no more memory.
        """
        whole = self if self.test_fraction is None else self._merge_test_examples(partition)
        split = partition.split(Labels(whole.targets, whole.groups, whole.group_names), clients, generator)
        sizes, order = tuple(map(len, split.parts)), torch.cat(split.parts)
        test_inputs, test_targets = whole.test_inputs, whole.test_targets
        if self.test_fraction is not None:
            kept, test = split_held_out(sizes, self.test_fraction, generator)
            sizes = tuple(training_size(size, self.test_fraction) for size in sizes)
            test_inputs, test_targets = whole.inputs[order[test]], whole.targets[order[test]]
            order = order[kept]
        multiplicity = int(torch.bincount(order, minlength=len(whole.targets)).max())
        task = Task(
            name=self.name,
            train=Federation(whole.inputs, whole.targets, sizes, max_multiplicity=multiplicity, order=order),
            test_inputs=test_inputs,
            test_targets=test_targets,
            kind=self.kind,
            classes=self.classes,
            client_names=split.names or tuple(f"client {number}" for number in range(len(sizes))),
            facts=(*self.facts, *_describe_test_split(self.test_fraction)),
            not_covered=(*self.not_covered, *_disclose_partition(partition, self.label)),
            public=None if self.public is None else Federation(*self.public, (len(self.public[1]),)),
            is_dealt=True,
        )
        return task.hold_out_validation(validation_fraction, generator)

    def _merge_test_examples(self, partition: AnyPartition) -> Examples:
        """Append the test examples to the training examples, so that clients get both."""
        if self.groups is not None:
            raise InvalidInput(
                f"The groups of {self.name}'s test examples are not known, so they can't be assigned to clients.",
                fix="Leave out test_fraction, or the option that loads the groups.",
            )
        if not partition.is_disjoint:
            raise InvalidInput(
                "If clients overlap, one client trains on what another holds out.",
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
    return (fill("data.test_split", share=f"{fraction:.0%}"),)


def _disclose_partition(partition: AnyPartition, label: str | None) -> tuple[str, ...]:
    if not partition.is_by_label:
        return ()
    return (fill(f"not_covered.partition.{partition.kind}", label=label or fill("data.label.of_class")),)
