"""Which client holds which examples, when one data set is dealt out: iid, or skewed by label."""

from typing import Annotated, Any, Literal, Protocol, TypeAlias

import torch
from pydantic import BeforeValidator, Field
from torch import Tensor

from discreet.errors import InvalidInput
from discreet.part import Positive, part


class Partition(Protocol):
    def split(self, labels: Tensor, clients: int, generator: torch.Generator) -> list[Tensor]:
        """Each client's examples, as indices into `labels`.

        Guarantee: the clients are disjoint, cover everything, and none is empty; the same generator, the same split.
        """


@part
class Iid:
    """Everybody draws from one hat: sizes differ by at most one example."""

    kind: Literal["iid"] = "iid"

    def split(self, labels: Tensor, clients: int, generator: torch.Generator) -> list[Tensor]:
        _check_enough(len(labels), clients)
        order = torch.randperm(len(labels), generator=generator)
        return list(order.tensor_split(clients))


@part
class Dirichlet:
    """Each label's examples go to the clients in shares drawn from Dirichlet(alpha) (Hsu et al. 2019).

    A large alpha is nearly iid; a small one gives each label to few clients. A client left with nothing takes one
    example of the largest.
    """

    kind: Literal["dirichlet"] = "dirichlet"
    alpha: Positive

    def split(self, labels: Tensor, clients: int, generator: torch.Generator) -> list[Tensor]:
        _check_enough(len(labels), clients)
        if labels.dim() != 1 or labels.is_floating_point():
            raise InvalidInput(
                "A Dirichlet partition deals out class labels, and these are none.",
                fix='Use partition = "iid".',
            )
        shuffled = torch.randperm(len(labels), generator=generator)
        shuffled = shuffled[labels[shuffled].argsort(stable=True)]  # by label, in random order within each
        counts = torch.unique(labels, return_counts=True)[1]
        owners = torch.cat([self._owners(int(count), clients, generator) for count in counts])
        return _none_empty([shuffled[owners == client] for client in range(clients)])

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


def _check_enough(examples: int, clients: int) -> None:
    if examples < clients:
        raise InvalidInput(
            f"{examples} examples can't be dealt out to {clients} clients so that each gets one.",
            fix="Lower the number of clients.",
        )


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
