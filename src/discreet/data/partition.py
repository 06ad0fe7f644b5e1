"""Partitions: how the examples of one data set are assigned to clients."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from discreet.data.dirichlet_partition import Dirichlet
from discreet.data.partition_contract import Labels, Split, check_client_count, group_by_owner, sort_by_target
from discreet.errors import InvalidInput
from discreet.lazy_torch import torch
from discreet.part import Count, Rate, part


@part
class Iid:
    """Assign examples at random. Clients are disjoint, and their sizes differ by at most one example."""

    is_disjoint: ClassVar[bool] = True
    is_by_label: ClassVar[bool] = False
    kind: Literal["iid"] = "iid"

    def split(self, labels: Labels, clients: int | None, generator: torch.Generator) -> Split:
        examples = len(labels.targets)
        clients = check_client_count(clients, examples)
        return Split(list(torch.randperm(examples, generator=generator).tensor_split(clients)))


@part
class StratifiedSplit:
    """Give each client an equal share of every label. Clients are disjoint; counts per label differ by at most one."""

    is_disjoint: ClassVar[bool] = True
    is_by_label: ClassVar[bool] = True
    kind: Literal["stratified"] = "stratified"

    def split(self, labels: Labels, clients: int | None, generator: torch.Generator) -> Split:
        clients = check_client_count(clients, len(labels.targets))
        if labels.targets.dim() != 1:
            raise InvalidInput(
                "A stratified partition needs one target per example, and here are several.", fix='Use "iid".'
            )
        ordered = sort_by_target(labels.targets, generator)
        return Split([ordered[client::clients] for client in range(clients)])


@part
class ByGroup:
    """Make each group of the data set, such as a state or a writer, a client. Clients are disjoint and ordered by name.

    If `clients` is set, that number of groups is drawn at random, and the other groups are left out.
    """

    is_disjoint: ClassVar[bool] = True
    is_by_label: ClassVar[bool] = False
    kind: Literal["by_group"] = "by_group"

    def split(self, labels: Labels, clients: int | None, generator: torch.Generator) -> Split:
        if labels.groups is None:
            raise InvalidInput(
                "A partition by group needs data with groups, and this data set has none.",
                fix='Use partition = "iid".',
            )
        counts = torch.bincount(labels.groups, minlength=len(labels.group_names))
        present = counts.nonzero()[:, 0]  # a group can't be a client if all its examples are held out
        if clients is not None and clients > len(present):
            raise InvalidInput(
                f"Every group is one client, and there are {len(present)} groups for {clients} clients.",
                fix="Lower the number of clients, or leave it out to take all.",
            )
        drawn = present[torch.randperm(len(present), generator=generator)[:clients].sort().values].tolist()
        parts = group_by_owner(torch.arange(len(labels.groups)), labels.groups, len(counts))
        names = tuple(labels.group_names[group] for group in drawn) if labels.group_names else None
        return Split([parts[group] for group in drawn], names)


@part
class Shards:
    """Sort the examples by target, cut them into clients × per_client shards, and assign the shards at random.

    Clients are disjoint, all examples are used, and shards differ in size by at most one example.

    Attributes:
        per_client: Shards per client. 1 is what Fu et al. 2021 do with loans sorted by interest rate; 2 is what
            McMahan et al. 2017 do.
    """

    is_disjoint: ClassVar[bool] = True
    is_by_label: ClassVar[bool] = True
    kind: Literal["shards"] = "shards"
    per_client: Count = 1

    def split(self, labels: Labels, clients: int | None, generator: torch.Generator) -> Split:
        clients = check_client_count(clients, len(labels.targets), self.per_client)
        if labels.targets.dim() != 1:
            raise InvalidInput("Shards are sorted by one target per example, and here are several.", fix='Use "iid".')
        shards = sort_by_target(labels.targets, generator).tensor_split(clients * self.per_client)
        hands = torch.randperm(len(shards), generator=generator).reshape(clients, self.per_client).tolist()
        return Split([torch.cat([shards[shard] for shard in hand]) for hand in hands])


@part
class OverlappingSplit:
    """Let each client draw a share of all examples, independently of the others. Some examples may be unused.

    An example that several clients hold is released by each of them, and the guarantee counts all these releases.

    Attributes:
        fraction: The share of all examples that each client gets.
    """

    is_disjoint: ClassVar[bool] = False
    is_by_label: ClassVar[bool] = False
    kind: Literal["overlapping"] = "overlapping"
    fraction: Rate = 0.1

    def split(self, labels: Labels, clients: int | None, generator: torch.Generator) -> Split:
        examples = len(labels.targets)
        size = max(1, int(self.fraction * examples))
        count = check_client_count(clients, examples, fewest=0)
        return Split([torch.randperm(examples, generator=generator)[:size] for _ in range(count)])


AnyPartition: TypeAlias = Annotated[
    Iid | StratifiedSplit | Dirichlet | ByGroup | Shards | OverlappingSplit,
    Field(discriminator="kind"),
    BeforeValidator(lambda value: {"kind": value} if isinstance(value, str) else value),  # "iid" is short for a table
]
