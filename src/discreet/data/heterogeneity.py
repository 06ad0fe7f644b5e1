"""How unlike clients are before anything is trained: the degree of non-IID Γ, and how far their labels differ.

Computed from the data itself, without noise: for the data owner's eyes, and covered by no guarantee.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from discreet.algorithms.training.batches import Batch
from discreet.data.federation import Federation
from discreet.data.tables.ranges import Ranges, Values
from discreet.data.tables.table import Table
from discreet.data.tables.table_encoding import Encoding, encode_table
from discreet.data.tasks.task import Kind

ITERATIONS = 500  # of gradient descent, where the least loss has no closed form
BLOCK = 256  # clients at once
ROUNDING = 1e-5  # inputs have single precision: what differs by less, beside the largest, depends on the others
NOT_COVERED = "Computed from the data itself, without noise: not covered by any guarantee."


@dataclass(frozen=True)
class Heterogeneity:
    """Γ = F* − Σ p_k·F_k*, in the terms of a linear model: F* is its least loss on all data, F_k* on client k's alone.

    p_k is the client's share of all examples. Γ is 0 where one model serves every client as well as its own would.
    `iterations` is 0 where the losses are exact; otherwise they are what so many iterations reach, and Γ an estimate.
    """

    gamma: float
    pooled_loss: float
    own_loss: float
    iterations: int
    chance: float  # about the Γ of as many clients who all draw from one distribution: own models fit chance as well
    label_distance: float | None  # mean total-variation distance of a client's labels to all labels

    @property
    def share(self) -> float:
        """What part of F* the clients' differences are: between 0 and 1."""
        return self.gamma / self.pooled_loss if self.pooled_loss > 0 else 0.0

    def facts(self) -> dict[str, Any]:
        return {
            "gamma": self.gamma,
            "share": self.share,
            "pooled_loss": self.pooled_loss,
            "own_loss": self.own_loss,
            "exact": self.iterations == 0,
            "iterations": self.iterations,
            "gamma_by_chance": self.chance,
            "label_distance": self.label_distance,
            "note": NOT_COVERED,
        }


def measure_heterogeneity(data: Federation, kind: Kind, classes: int, iterations: int = ITERATIONS) -> Heterogeneity:
    """By least squares for a number, which is exact; by logistic regression for a class, which is an estimate."""
    sizes = torch.tensor(data.sizes, dtype=torch.float64)
    numbers = kind == "regression"
    pooled, own = _squared_errors(data) if numbers else _cross_entropies(data, classes, iterations)
    own_loss = float((sizes / sizes.sum()) @ own)
    return Heterogeneity(
        gamma=max(0.0, pooled - own_loss),  # rounding may leave less than nothing
        pooled_loss=pooled,
        own_loss=own_loss,
        iterations=0 if numbers else iterations,
        chance=min(pooled, _expected_gap(data) * (pooled if numbers else (classes - 1) / 2)),
        label_distance=None if numbers else label_distance(data, classes),
    )


def measure_table_heterogeneity(table: Table, ranges: Ranges, *, client: str, label: str) -> Heterogeneity:
    """Of all rows of a user's own table."""
    encoding = Encoding.of(table, ranges, client=client, label=label)
    found = encode_table(table, encoding)
    kind: Kind = "classification" if isinstance(encoding.label, Values) else "regression"
    return measure_heterogeneity(Federation(found.inputs, found.targets, found.sizes), kind, encoding.label.width)


def label_distance(data: Federation, classes: int) -> float:
    """½Σ|p_k(c) − p(c)| over the classes c, as a mean over clients: 0 where all have the same labels, below 1."""
    held = data.targets if data.order is None else data.targets[data.order]
    owner = torch.repeat_interleave(torch.tensor(data.sizes))
    counts = torch.zeros(len(data.sizes), classes, dtype=torch.float64)
    counts.index_put_((owner, held.cpu()), torch.ones(len(held), dtype=torch.float64), accumulate=True)
    own, pooled = counts / counts.sum(dim=1, keepdim=True), counts.sum(dim=0) / counts.sum()
    return float(((own - pooled).abs().sum(dim=1) / 2).mean())


def _expected_gap(data: Federation) -> float:
    """(K − 1)·r/n for K clients, n examples and inputs of rank r.

    By so much of the noise's variance a fit of each alone lies below the fit of all; half of it, for each class but
    one, is what it gains in likelihood (Wilks 1938).
    """
    rows = _with_intercept(data.examples_at(torch.arange(sum(data.sizes)))[0], 1)
    rank = int(torch.linalg.matrix_rank(rows.T @ rows, rtol=ROUNDING**2, hermitian=True))
    return (len(data.sizes) - 1) * rank / len(rows)


def _squared_errors(data: Federation) -> tuple[float, Tensor]:
    """The least mean squared error on all data, and each client's own: in closed form."""
    inputs, targets = data.examples_at(torch.arange(sum(data.sizes)))
    rows, wanted = _with_intercept(inputs, 1), targets.double().reshape(len(targets), -1)
    sizes = list(data.sizes)
    own = map(_least_squares, torch.split(rows, sizes), torch.split(wanted, sizes))
    return _least_squares(rows, wanted), torch.tensor(list(own), dtype=torch.float64)


def _least_squares(inputs: Tensor, targets: Tensor) -> float:
    best = torch.linalg.lstsq(inputs, targets, rcond=ROUNDING, driver="gelsd").solution
    return float((inputs @ best - targets).square().mean())


def _cross_entropies(data: Federation, classes: int, iterations: int) -> tuple[float, Tensor]:
    """The loss that logistic regression reaches on all data, and what each client reaches from there on its own.

    Who starts from the model of all and never gets worse than it makes no Γ below 0.
    """
    inputs, targets = data.examples_at(torch.arange(sum(data.sizes)))
    whole = Batch(inputs[None], targets[None], torch.ones(1, len(targets), dtype=torch.bool), None)
    start = torch.zeros(1, data.inputs[0].numel() + 1, classes, dtype=torch.float64)
    model, pooled = _minimise_loss(whole, start, iterations)
    own = []
    for first in range(0, len(data.sizes), BLOCK):
        clients = range(first, min(first + BLOCK, len(data.sizes)))
        own.append(_minimise_loss(data.block(clients).full_batch(), model.expand(len(clients), -1, -1), iterations)[1])
    return float(pooled), torch.cat(own)


def _minimise_loss(batch: Batch, start: Tensor, iterations: int) -> tuple[Tensor, Tensor]:
    """Models and their mean losses after accelerated gradient descent (Nesterov 1983), one a client.

    The step is 1 over a bound on the curvature: half the mean squared norm of an example's inputs. Whoever ends above
    its start keeps the start.
    """
    inputs, targets = _with_intercept(batch.inputs, 2), batch.targets
    weights = batch.mask.double() / batch.mask.sum(dim=1, keepdim=True)
    curvature = (weights[..., None] * inputs.square()).sum(dim=(1, 2), keepdim=True) / 2
    model = ahead = start
    for number in range(iterations):
        errors = torch.softmax(inputs @ ahead, dim=2) - functional.one_hot(targets, start.shape[2])
        gradient = inputs.transpose(1, 2) @ (weights[..., None] * errors)
        before, model = model, ahead - gradient / curvature
        ahead = model + number / (number + 3) * (model - before)
    reached = [_losses(inputs, targets, weights, each) for each in (start, model)]
    better = reached[1] <= reached[0]
    return torch.where(better[:, None, None], model, start), torch.where(better, reached[1], reached[0])


def _losses(inputs: Tensor, targets: Tensor, weights: Tensor, model: Tensor) -> Tensor:
    each = functional.cross_entropy((inputs @ model).transpose(1, 2), targets, reduction="none")
    return (weights * each).sum(dim=1)


def _with_intercept(inputs: Tensor, dimensions: int) -> Tensor:
    """Flat but for the first dimensions, in double precision, with a constant 1 beside the inputs."""
    flat = inputs.double().reshape(*inputs.shape[:dimensions], -1)
    return torch.cat([flat, torch.ones_like(flat[..., :1])], dim=-1)
