"""The contract of a partition, and the steps that several partitions share."""

from __future__ import annotations

from typing import ClassVar, NamedTuple, Protocol

from discreet.errors import InvalidInput
from discreet.lazy_torch import Tensor, torch


class Labels(NamedTuple):
    """What a partition may depend on.

    Attributes:
        targets: The target of each example.
        groups: The group of each example, as an index into `group_names`. None if the data has no groups.
    """

    targets: Tensor
    groups: Tensor | None = None
    group_names: tuple[str, ...] = ()


class Split(NamedTuple):
    """The result of a partition: the indices of each client's examples, and the clients' names if they have any."""

    parts: list[Tensor]
    names: tuple[str, ...] | None = None


class Partition(Protocol):
    """A rule that assigns examples to clients.

    Attributes:
        is_disjoint: Whether no two clients hold the same example.
        is_by_label: Whether the targets decide which client gets an example. Then the card says so.
    """

    is_disjoint: ClassVar[bool]
    is_by_label: ClassVar[bool]

    def split(self, labels: Labels, clients: int | None, generator: torch.Generator) -> Split:
        """Assign the examples to clients.

        Args:
            labels: The targets and groups of the examples.
            clients: Number of clients. None: one client per group.
            generator: The source of randomness.

        Guarantee: no client is empty, no client holds an example twice, and the same seed gives the same split.
        """


def check_client_count(clients: int | None, examples: int, fewest: int = 1) -> int:
    """Return the number of clients. Refuse none, and more clients than can get at least `fewest` examples each."""
    if clients is None:
        raise InvalidInput("This partition needs the number of clients.", fix="Set clients = 10, for instance.")
    if examples < clients * fewest:
        raise InvalidInput(
            f"{examples} examples can't be assigned to {clients} clients so that each gets "
            f"{'one' if fewest == 1 else fewest}.",
            fix="Lower the number of clients.",
        )
    return clients


def sort_by_target(targets: Tensor, generator: torch.Generator) -> Tensor:
    """Return the examples in the order of their targets; equal targets are in random order."""
    shuffled = torch.randperm(len(targets), generator=generator)
    return shuffled[targets[shuffled].argsort(stable=True)]


def group_by_owner(examples: Tensor, owners: Tensor, clients: int) -> list[Tensor]:
    """Return the examples of each owner, in their order."""
    ends = torch.bincount(owners, minlength=clients).cumsum(0)
    return list(examples[owners.argsort(stable=True)].tensor_split(ends[:-1]))
