"""Which client holds which examples, when one data set is dealt out: iid, or skewed by label."""

from typing import Annotated, Any, Literal, NamedTuple, Protocol, TypeAlias

import torch
from pydantic import BeforeValidator, Field
from torch import Tensor

from discreet.errors import InvalidInput
from discreet.part import Positive, part


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
    def split(self, labels: Labels, clients: int | None, generator: torch.Generator) -> Split:
        """Deal the examples out to so many clients; None: as many as the data has groups.

        Guarantee: no client is empty, and the same generator gives the same split.
        """


@part
class Iid:
    """Everybody draws from one hat: sizes differ by at most one example."""

    kind: Literal["iid"] = "iid"

    def split(self, labels: Labels, clients: int | None, generator: torch.Generator) -> Split:
        examples = len(labels.targets)
        order = torch.randperm(examples, generator=generator)
        return Split(list(order.tensor_split(_enough(examples, clients))))


@part
class Dirichlet:
    """Each label's examples go to the clients in shares drawn from Dirichlet(alpha) (Hsu et al. 2019).

    A large alpha is nearly iid; a small one gives each label to few clients. A client left with nothing takes one
    example of the largest.
    """

    kind: Literal["dirichlet"] = "dirichlet"
    alpha: Positive

    def split(self, labels: Labels, clients: int | None, generator: torch.Generator) -> Split:
        targets = labels.targets
        clients = _enough(len(targets), clients)
        if targets.dim() != 1 or targets.is_floating_point():
            raise InvalidInput(
                "A Dirichlet partition deals out class labels, and these are none.",
                fix='Use partition = "iid".',
            )
        shuffled = torch.randperm(len(targets), generator=generator)
        shuffled = shuffled[targets[shuffled].argsort(stable=True)]  # by label, in random order within each
        counts = torch.unique(targets, return_counts=True)[1]
        owners = torch.cat([self._owners(int(count), clients, generator) for count in counts])
        return Split(_none_empty([shuffled[owners == client] for client in range(clients)]))

    def _owners(self, examples: int, clients: int, generator: torch.Generator) -> Tensor:
        """Which client gets each of a label's examples: consecutive runs, as long as their shares."""
        ends = (self._shares(clients, generator).cumsum(0) * examples).round()
        ends[-1] = examples
        return torch.searchsorted(ends, torch.arange(examples, dtype=torch.float64), right=True)

    def _shares(self, clients: int, generator: torch.Generator) -> Tensor:
        """Dirichlet(alpha, …, alpha) from gammas, in logarithms: for a small alpha the gammas underflow."""
        shapes = torch.full((clients,), self.alpha, dtype=torch.float64)
        larger = torch._standard_gamma(shapes + 1, generator=generator)
        uniform = torch.rand(clients, dtype=torch.float64, generator=generator)
        # Gamma(a) = Gamma(a+1)·U^(1/a), so its logarithm never leaves the range of a double by underflow
        return torch.softmax(larger.log() + uniform.clamp(min=1e-300).log() / self.alpha, dim=0)


def _enough(examples: int, clients: int | None) -> int:
    """The number of clients, if each can have an example."""
    if clients is None:
        raise InvalidInput("This partition needs to know how many clients there are.", fix="Give clients = 10, say.")
    if examples < clients:
        raise InvalidInput(
            f"{examples} examples can't be dealt out to {clients} clients so that each gets one.",
            fix="Lower the number of clients.",
        )
    return clients


def _none_empty(parts: list[Tensor]) -> list[Tensor]:
    for client, own in enumerate(parts):
        if not len(own):
            largest = max(range(len(parts)), key=lambda other: len(parts[other]))
            parts[client], parts[largest] = parts[largest][:1], parts[largest][1:]
    return parts


def _from_word(value: Any) -> Any:
    """`partition = "iid"` is short for `partition = { kind = "iid" }`."""
    return {"kind": value} if isinstance(value, str) else value


AnyPartition: TypeAlias = Annotated[Iid | Dirichlet, Field(discriminator="kind"), BeforeValidator(_from_word)]
