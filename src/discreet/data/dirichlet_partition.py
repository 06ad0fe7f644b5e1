"""The Dirichlet partition: clients with different label frequencies, and with equal or different sizes."""

from __future__ import annotations

from typing import ClassVar, Literal

from discreet.data.partition_contract import Labels, Split, check_client_count, group_by_owner, sort_by_target
from discreet.errors import InvalidInput
from discreet.lazy_torch import Tensor, torch
from discreet.part import Positive, part


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
    is_by_label: ClassVar[bool] = True
    kind: Literal["dirichlet"] = "dirichlet"
    alpha: Positive
    sizes: Literal["free", "equal"] = "free"

    def split(self, labels: Labels, clients: int | None, generator: torch.Generator) -> Split:
        targets = labels.targets
        clients = check_client_count(clients, len(targets))
        if targets.dim() != 1 or targets.is_floating_point():
            raise InvalidInput(
                "A Dirichlet partition needs class labels as targets, and these targets are numbers.",
                fix='Use partition = "iid", or "shards", which can sort numbers.',
            )
        ordered, counts = sort_by_target(targets, generator), torch.unique(targets, return_counts=True)[1]
        if self.sizes == "equal":
            return Split(group_by_owner(ordered, self._owners(counts, clients, generator), clients))
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
            queue = sort_by_target(label, generator)  # random order within each label, so that no client is preferred
            who, label = who[queue], label[queue]
            asked = torch.bincount(label, minlength=len(counts))
            place = used[label] + torch.arange(len(label)) - (asked.cumsum(0) - asked)[label]
            served = place < counts[label]
            owners[(starts[label] + place)[served]] = who[served]
            used += torch.bincount(label[served], minlength=len(counts))
            wanted = wanted - torch.bincount(who[served], minlength=clients)
        return owners


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
