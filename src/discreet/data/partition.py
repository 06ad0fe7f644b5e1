"""Partitions: how the examples of one data set are assigned to clients."""

from typing import Annotated, ClassVar, Literal, NamedTuple, Protocol, TypeAlias

import torch
from pydantic import BeforeValidator, Field
from torch import Tensor

from discreet.errors import InvalidInput
from discreet.part import Count, Positive, Rate, part


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
        label_rule: How the targets decide which client gets an example, for the card. "" if they don't.
    """

    is_disjoint: ClassVar[bool]
    label_rule: ClassVar[str]

    def split(self, labels: Labels, clients: int | None, generator: torch.Generator) -> Split:
        """Assign the examples to clients.

        Args:
            labels: The targets and groups of the examples.
            clients: Number of clients. None: one client per group.
            generator: The source of randomness.

        Guarantee: no client is empty, no client holds an example twice, and the same seed gives the same split.
        """


@part
class Iid:
    """Assign examples at random. Clients are disjoint, and their sizes differ by at most one example."""

    is_disjoint: ClassVar[bool] = True
    label_rule: ClassVar[str] = ""
    kind: Literal["iid"] = "iid"

    def split(self, labels: Labels, clients: int | None, generator: torch.Generator) -> Split:
        examples = len(labels.targets)
        clients = _check_enough_examples(examples, _require_clients(clients))
        return Split(list(torch.randperm(examples, generator=generator).tensor_split(clients)))


@part
class StratifiedSplit:
    """Give each client an equal share of every label. Clients are disjoint; counts per label differ by at most one."""

    is_disjoint: ClassVar[bool] = True
    label_rule: ClassVar[str] = "equal shares of each"
    kind: Literal["stratified"] = "stratified"

    def split(self, labels: Labels, clients: int | None, generator: torch.Generator) -> Split:
        clients = _check_enough_examples(len(labels.targets), _require_clients(clients))
        if labels.targets.dim() != 1:
            raise InvalidInput(
                "A stratified partition needs one target per example, and here are several.", fix='Use "iid".'
            )
        ordered = _sort_by_target(labels.targets, generator)
        return Split([ordered[client::clients] for client in range(clients)])


@part
class Dirichlet:
    """Give clients different label frequencies. Clients are disjoint, and all examples are used.

    With `sizes = "free"`, each label's examples go to the clients in shares drawn from Dirichlet(alpha, …, alpha), so
    sizes differ too (Yurochkin et al. 2019). A client without examples takes one example of the largest client.

    With `sizes = "equal"`, sizes differ by at most one. Each client draws its labels from its own mixture, which comes
    from Dirichlet(alpha·C·prior) for C labels. If all labels are equally frequent, that is Dirichlet(alpha, …, alpha),
    as for CIFAR in DP-FedSAM (Shi et al. 2023) and in Acar et al. 2021; Hsu et al. 2019 write alpha for our alpha·C.
    Clients draw at the same time and without replacement. When a label has run out, the clients that still want it
    draw among the other labels.

    Attributes:
        alpha: The concentration. A large value is nearly iid; a small value gives each client few labels.
        sizes: Whether clients have equally many examples ("equal") or not ("free").
    """

    is_disjoint: ClassVar[bool] = True
    label_rule: ClassVar[str] = "a Dirichlet draw"
    kind: Literal["dirichlet"] = "dirichlet"
    alpha: Positive
    sizes: Literal["free", "equal"] = "free"

    def split(self, labels: Labels, clients: int | None, generator: torch.Generator) -> Split:
        targets = labels.targets
        clients = _check_enough_examples(len(targets), _require_clients(clients))
        if targets.dim() != 1 or targets.is_floating_point():
            raise InvalidInput(
                "A Dirichlet partition needs class labels as targets, and these targets are numbers.",
                fix='Use partition = "iid", or "shards", which can sort numbers.',
            )
        ordered, counts = _sort_by_target(targets, generator), torch.unique(targets, return_counts=True)[1]
        if self.sizes == "equal":
            return Split(_group_by_owner(ordered, self._owners(counts, clients, generator), clients))
        shares = torch.cat([self._runs(int(count), clients, generator) for count in counts])
        return Split(_fill_empty_clients([ordered[shares == client] for client in range(clients)]))

    def _runs(self, examples: int, clients: int, generator: torch.Generator) -> Tensor:
        """Return the client of each example of one label: consecutive runs, in proportion to the clients' shares."""
        logs = _log_gammas(torch.full((clients,), self.alpha, dtype=torch.float64), generator)
        ends = (torch.softmax(logs, dim=0).cumsum(0) * examples).round()
        ends[-1] = examples
        return torch.searchsorted(ends, torch.arange(examples, dtype=torch.float64), right=True)

    def _owners(self, counts: Tensor, clients: int, generator: torch.Generator) -> Tensor:
        """Return the client of each example in a list sorted by label, if all clients get equally many."""
        examples, starts = int(counts.sum()), counts.cumsum(0) - counts
        wanted = examples // clients + (torch.arange(clients) < examples % clients).to(torch.int64)
        concentration = self.alpha * len(counts) * counts.double() / examples
        mixtures = _log_gammas(concentration.repeat(clients, 1), generator)
        owners, used = torch.empty(examples, dtype=torch.int64), torch.zeros_like(counts)
        while int(wanted.sum()):  # each pass satisfies all clients or uses up a label, so there are few passes
            shares = torch.softmax(mixtures.masked_fill(used == counts, -torch.inf), dim=1)
            drawn = torch.multinomial(shares, int(wanted.max()), replacement=True, generator=generator)
            asking = torch.arange(drawn.shape[1]) < wanted[:, None]
            who, label = asking.nonzero()[:, 0], drawn[asking]
            queue = _sort_by_target(label, generator)  # random order within each label, so that no client is preferred
            who, label = who[queue], label[queue]
            asked = torch.bincount(label, minlength=len(counts))
            place = used[label] + torch.arange(len(label)) - (asked.cumsum(0) - asked)[label]
            served = place < counts[label]
            owners[(starts[label] + place)[served]] = who[served]
            used += torch.bincount(label[served], minlength=len(counts))
            wanted = wanted - torch.bincount(who[served], minlength=clients)
        return owners


@part
class ByGroup:
    """Make each group of the data set, such as a state or a writer, a client. Clients are disjoint and ordered by name.

    If `clients` is set, that number of groups is drawn at random, and the other groups are left out.
    """

    is_disjoint: ClassVar[bool] = True
    label_rule: ClassVar[str] = ""
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
        parts = _group_by_owner(torch.arange(len(labels.groups)), labels.groups, len(counts))
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
    label_rule: ClassVar[str] = "sorted into shards"
    kind: Literal["shards"] = "shards"
    per_client: Count = 1

    def split(self, labels: Labels, clients: int | None, generator: torch.Generator) -> Split:
        clients = _check_enough_examples(len(labels.targets), _require_clients(clients), self.per_client)
        if labels.targets.dim() != 1:
            raise InvalidInput("Shards are sorted by one target per example, and here are several.", fix='Use "iid".')
        shards = _sort_by_target(labels.targets, generator).tensor_split(clients * self.per_client)
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
    label_rule: ClassVar[str] = ""
    kind: Literal["overlapping"] = "overlapping"
    fraction: Rate = 0.1

    def split(self, labels: Labels, clients: int | None, generator: torch.Generator) -> Split:
        examples = len(labels.targets)
        size = max(1, int(self.fraction * examples))
        return Split([torch.randperm(examples, generator=generator)[:size] for _ in range(_require_clients(clients))])


def _require_clients(clients: int | None) -> int:
    if clients is None:
        raise InvalidInput("This partition needs the number of clients.", fix="Set clients = 10, for instance.")
    return clients


def _check_enough_examples(examples: int, clients: int, fewest: int = 1) -> int:
    """Return `clients` if each of them can get at least `fewest` examples, and refuse otherwise."""
    if examples < clients * fewest:
        raise InvalidInput(
            f"{examples} examples can't be assigned to {clients} clients so that each gets "
            f"{'one' if fewest == 1 else fewest}.",
            fix="Lower the number of clients.",
        )
    return clients


def _sort_by_target(targets: Tensor, generator: torch.Generator) -> Tensor:
    """Return the examples in the order of their targets; equal targets are in random order."""
    shuffled = torch.randperm(len(targets), generator=generator)
    return shuffled[targets[shuffled].argsort(stable=True)]


def _group_by_owner(examples: Tensor, owners: Tensor, clients: int) -> list[Tensor]:
    """Return the examples of each owner, in their order."""
    ends = torch.bincount(owners, minlength=clients).cumsum(0)
    return list(examples[owners.argsort(stable=True)].tensor_split(ends[:-1]))


def _log_gammas(shapes: Tensor, generator: torch.Generator) -> Tensor:
    """Draw the logarithms of Gamma(shape), whose softmax is Dirichlet. The gammas themselves would underflow."""
    shapes = shapes.clamp(1e-200, 1e200)  # beyond these bounds the result does not change, and doubles overflow
    larger = torch._standard_gamma(shapes + 1, generator=generator)
    uniform = torch.rand(shapes.shape, dtype=torch.float64, generator=generator)
    # Gamma(a) = Gamma(a+1)·U^(1/a), so its logarithm never leaves the range of a double by underflow
    return larger.log() + uniform.clamp(min=1e-300).log() / shapes


def _fill_empty_clients(parts: list[Tensor]) -> list[Tensor]:
    """Give each empty client one example of the largest client."""
    for client, own in enumerate(parts):
        if not len(own):
            largest = max(range(len(parts)), key=lambda other: len(parts[other]))
            parts[client], parts[largest] = parts[largest][:1], parts[largest][1:]
    return parts


AnyPartition: TypeAlias = Annotated[
    Iid | StratifiedSplit | Dirichlet | ByGroup | Shards | OverlappingSplit,
    Field(discriminator="kind"),
    BeforeValidator(lambda value: {"kind": value} if isinstance(value, str) else value),  # "iid" is short for a table
]
