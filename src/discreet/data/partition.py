"""Which client holds which examples, when one data set is dealt out: evenly, skewed, by owner, or with overlap."""

from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Protocol, TypeAlias

import torch
from pydantic import BeforeValidator, Field
from torch import Tensor

from discreet.errors import InvalidInput
from discreet.part import Count, Positive, Rate, part


class Labels(NamedTuple):
    """What a partition may look at: each example's target and, where the data set knows, whose it is."""

    targets: Tensor
    groups: Tensor | None = None
    group_names: tuple[str, ...] = ()


class Split(NamedTuple):
    """Each client's examples, as indices; their names, where they have any."""

    parts: list[Tensor]
    names: tuple[str, ...] | None = None


class Partition(Protocol):
    is_disjoint: ClassVar[bool]  # no example lies in two clients
    by_label: ClassVar[str]  # how targets decide who holds what, in a word or two; "" where they don't

    def split(self, labels: Labels, clients: int | None, generator: torch.Generator) -> Split:
        """Deal the examples out to so many clients; None: as many as the data has groups.

        Guarantee: no client is empty, none holds an example twice, and the same generator gives the same split.
        """


@part
class Iid:
    """Everybody draws from one hat, until it is empty: disjoint, and sizes differ by at most one example."""

    is_disjoint: ClassVar[bool] = True
    by_label: ClassVar[str] = ""
    kind: Literal["iid"] = "iid"

    def split(self, labels: Labels, clients: int | None, generator: torch.Generator) -> Split:
        examples = len(labels.targets)
        clients = _check_enough_examples(examples, _require_clients(clients))
        return Split(list(torch.randperm(examples, generator=generator).tensor_split(clients)))


@part
class StratifiedSplit:
    """Every label is dealt out evenly by itself: disjoint, and sizes differ by at most one, of each label too."""

    is_disjoint: ClassVar[bool] = True
    by_label: ClassVar[str] = "equal shares of each"
    kind: Literal["stratified"] = "stratified"

    def split(self, labels: Labels, clients: int | None, generator: torch.Generator) -> Split:
        clients = _check_enough_examples(len(labels.targets), _require_clients(clients))
        if labels.targets.dim() != 1:
            raise InvalidInput("Shares are of one target an example, and here are several.", fix='Use "iid".')
        by_label = _sort_by_target(labels.targets, generator)
        return Split([by_label[client::clients] for client in range(clients)])


@part
class Dirichlet:
    """Labels are skewed: a large alpha is nearly iid, a small one gives a client few labels. Disjoint; all are dealt.

    `sizes = "free"`: each label's examples go to the clients in shares drawn from Dirichlet(alpha, …, alpha), so
    sizes differ too (Yurochkin et al. 2019). A client left with nothing takes one example of the largest.

    `sizes = "equal"`: sizes differ by at most one, and each client draws its labels from a mixture of its own, which
    comes from Dirichlet(alpha·C·prior) for C labels; where they are equally frequent that is Dirichlet(alpha, …,
    alpha), as in DP-FedSAM's CIFAR and in Acar et al. 2021 (Hsu et al. 2019 write alpha for our alpha·C). Clients
    draw together, without replacement; once a label has run out, those who wanted more draw among the others.
    """

    is_disjoint: ClassVar[bool] = True
    by_label: ClassVar[str] = "a Dirichlet draw"
    kind: Literal["dirichlet"] = "dirichlet"
    alpha: Positive
    sizes: Literal["free", "equal"] = "free"

    def split(self, labels: Labels, clients: int | None, generator: torch.Generator) -> Split:
        targets = labels.targets
        clients = _check_enough_examples(len(targets), _require_clients(clients))
        if targets.dim() != 1 or targets.is_floating_point():
            raise InvalidInput(
                "A Dirichlet partition deals out class labels, and these are none.",
                fix='Use partition = "iid", or "shards", which sorts numbers too.',
            )
        by_label, counts = _sort_by_target(targets, generator), torch.unique(targets, return_counts=True)[1]
        if self.sizes == "equal":
            return Split(_group_by_owner(by_label, self._owners(counts, clients, generator), clients))
        shares = torch.cat([self._runs(int(count), clients, generator) for count in counts])
        return Split(_fill_empty_clients([by_label[shares == client] for client in range(clients)]))

    def _runs(self, examples: int, clients: int, generator: torch.Generator) -> Tensor:
        """Which client gets each of a label's examples: consecutive runs, as long as their shares."""
        logs = _log_gammas(torch.full((clients,), self.alpha, dtype=torch.float64), generator)
        ends = (torch.softmax(logs, dim=0).cumsum(0) * examples).round()
        ends[-1] = examples
        return torch.searchsorted(ends, torch.arange(examples, dtype=torch.float64), right=True)

    def _owners(self, counts: Tensor, clients: int, generator: torch.Generator) -> Tensor:
        """Which client gets each example, of a list sorted by label, when all get equally many."""
        examples, starts = int(counts.sum()), counts.cumsum(0) - counts
        wanted = examples // clients + (torch.arange(clients) < examples % clients).to(torch.int64)
        concentration = self.alpha * len(counts) * counts.double() / examples
        mixtures = _log_gammas(concentration.repeat(clients, 1), generator)
        owners, taken = torch.empty(examples, dtype=torch.int64), torch.zeros_like(counts)
        while int(wanted.sum()):  # each pass fills everybody or empties a label, so there are few
            shares = torch.softmax(mixtures.masked_fill(taken == counts, -torch.inf), dim=1)
            drawn = torch.multinomial(shares, int(wanted.max()), replacement=True, generator=generator)
            asking = torch.arange(drawn.shape[1]) < wanted[:, None]
            who, label = asking.nonzero()[:, 0], drawn[asking]
            queue = _sort_by_target(label, generator)  # at each label in random order: nobody is served first
            who, label = who[queue], label[queue]
            asked = torch.bincount(label, minlength=len(counts))
            place = taken[label] + torch.arange(len(label)) - (asked.cumsum(0) - asked)[label]
            served = place < counts[label]
            owners[(starts[label] + place)[served]] = who[served]
            taken += torch.bincount(label[served], minlength=len(counts))
            wanted = wanted - torch.bincount(who[served], minlength=clients)
        return owners


@part
class ByGroup:
    """Each group that the data set knows (a state, a writer) is a client, in the order of their names: disjoint.

    With `clients` so many groups are drawn at random and the others are left out; without it all of them take part.
    """

    is_disjoint: ClassVar[bool] = True
    by_label: ClassVar[str] = ""
    kind: Literal["by_group"] = "by_group"

    def split(self, labels: Labels, clients: int | None, generator: torch.Generator) -> Split:
        if labels.groups is None:
            raise InvalidInput(
                "A partition by group needs data that says whose each example is, and this data set doesn't.",
                fix='Use partition = "iid".',
            )
        counts = torch.bincount(labels.groups, minlength=len(labels.group_names))
        present = counts.nonzero()[:, 0]  # a group whose examples are all held out can't be a client
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
    """Sorted by target, cut into clients × per_client shards, and dealt out: disjoint, and all are dealt.

    Sizes differ by at most one example a shard. `per_client = 1` sorts the clients themselves, as Fu et al. 2023 sort
    loans by interest rate; 2 is McMahan et al. 2017.
    """

    is_disjoint: ClassVar[bool] = True
    by_label: ClassVar[str] = "sorted into shards"
    kind: Literal["shards"] = "shards"
    per_client: Count = 1

    def split(self, labels: Labels, clients: int | None, generator: torch.Generator) -> Split:
        clients = _check_enough_examples(len(labels.targets), _require_clients(clients), self.per_client)
        if labels.targets.dim() != 1:
            raise InvalidInput("Shards are sorted by one target an example, and here are several.", fix='Use "iid".')
        shards = _sort_by_target(labels.targets, generator).tensor_split(clients * self.per_client)
        hands = torch.randperm(len(shards), generator=generator).reshape(clients, self.per_client).tolist()
        return Split([torch.cat([shards[shard] for shard in hand]) for hand in hands])


@part
class OverlappingSplit:
    """Each client draws its own share of all examples, whatever the others hold: not disjoint, and some may be left.

    That is "a random 10 % for each client". An example in several clients is released by each of them.
    """

    is_disjoint: ClassVar[bool] = False
    by_label: ClassVar[str] = ""
    kind: Literal["overlapping"] = "overlapping"
    fraction: Rate = 0.1

    def split(self, labels: Labels, clients: int | None, generator: torch.Generator) -> Split:
        examples = len(labels.targets)
        each = max(1, int(self.fraction * examples))
        return Split([torch.randperm(examples, generator=generator)[:each] for _ in range(_require_clients(clients))])


def _require_clients(clients: int | None) -> int:
    if clients is None:
        raise InvalidInput("This partition needs to know how many clients there are.", fix="Give clients = 10, say.")
    return clients


def _check_enough_examples(examples: int, clients: int, each: int = 1) -> int:
    """The number of clients, if each can have so many examples."""
    if examples < clients * each:
        raise InvalidInput(
            f"{examples} examples can't be dealt out to {clients} clients so that each gets "
            f"{'one' if each == 1 else each}.",
            fix="Lower the number of clients.",
        )
    return clients


def _sort_by_target(targets: Tensor, generator: torch.Generator) -> Tensor:
    """The examples in the order of their targets, equal ones in random order."""
    shuffled = torch.randperm(len(targets), generator=generator)
    return shuffled[targets[shuffled].argsort(stable=True)]


def _group_by_owner(examples: Tensor, owners: Tensor, clients: int) -> list[Tensor]:
    """Each owner's examples, in their order."""
    ends = torch.bincount(owners, minlength=clients).cumsum(0)
    return list(examples[owners.argsort(stable=True)].tensor_split(ends[:-1]))


def _log_gammas(shapes: Tensor, generator: torch.Generator) -> Tensor:
    """Logarithms of Gamma(shape) draws, whose softmax is Dirichlet: for a small shape the gammas underflow."""
    shapes = shapes.clamp(1e-200, 1e200)  # past that the limit is reached, and doubles end
    larger = torch._standard_gamma(shapes + 1, generator=generator)
    uniform = torch.rand(shapes.shape, dtype=torch.float64, generator=generator)
    # Gamma(a) = Gamma(a+1)·U^(1/a), so its logarithm never leaves the range of a double by underflow
    return larger.log() + uniform.clamp(min=1e-300).log() / shapes


def _fill_empty_clients(parts: list[Tensor]) -> list[Tensor]:
    for client, own in enumerate(parts):
        if not len(own):
            largest = max(range(len(parts)), key=lambda other: len(parts[other]))
            parts[client], parts[largest] = parts[largest][:1], parts[largest][1:]
    return parts


def _expand_word(value: Any) -> Any:
    """`partition = "iid"` is short for `partition = { kind = "iid" }`."""
    return {"kind": value} if isinstance(value, str) else value


AnyPartition: TypeAlias = Annotated[
    Iid | StratifiedSplit | Dirichlet | ByGroup | Shards | OverlappingSplit,
    Field(discriminator="kind"),
    BeforeValidator(_expand_word),
]
