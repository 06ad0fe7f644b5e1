"""Measure how much clients differ before training: the degree of non-IID Γ, and the distance of their labels.

These numbers are computed from the data without noise. They are for the data's owner only: no guarantee covers them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from discreet.algorithms.training.batches import Batch
from discreet.data.federation import Federation
from discreet.data.tables.column_kinds import Values
from discreet.data.tables.ranges import Ranges
from discreet.data.tables.table import Table
from discreet.data.tables.table_encoding import Encoding, encode_table
from discreet.data.tasks.task import Kind
from discreet.lazy_torch import Tensor, functional, torch

ITERATIONS = 500  # of gradient descent, if the least loss has no closed form
BLOCK = 256  # clients at once
ROUNDING = 1e-5  # relative to the largest: smaller singular values are rounding errors of single precision
NOT_COVERED = "Computed from the data without noise: not covered by any guarantee."


@dataclass(frozen=True)
class Heterogeneity:
    """The degree of non-IID Γ = F* − Σ p_k·F_k* of a linear model; the fields are JSON keys.

    F* is the least loss on all data, F_k* the least loss on the data of client k, and p_k the client's share of all
    examples. Γ is 0 if one model fits every client as well as a model of its own.

    Attributes:
        gamma: Γ.
        pooled_loss: F*.
        own_loss: Σ p_k·F_k*.
        iterations: 0 if the losses are exact. Otherwise the number of iterations that estimated them.
        gamma_by_chance: Approximately the Γ of clients that all draw from one distribution, because own models also
            fit noise.
        label_distance: Mean total-variation distance of a client's labels to all labels. None for a regression.
    """

    gamma: float
    pooled_loss: float
    own_loss: float
    iterations: int
    gamma_by_chance: float
    label_distance: float | None

    @property
    def share(self) -> float:
        """Γ as a share of F*, between 0 and 1."""
        return self.gamma / self.pooled_loss if self.pooled_loss > 0 else 0.0

    def facts(self) -> dict[str, Any]:
        """Return all numbers as plain data, for JSON."""
        return asdict(self) | {"share": self.share, "exact": self.iterations == 0, "note": NOT_COVERED}


def measure_heterogeneity(data: Federation, kind: Kind, classes: int, iterations: int = ITERATIONS) -> Heterogeneity:
    """Measure by least squares for a regression, which is exact, or by logistic regression, which is an estimate."""
    sizes = torch.tensor(data.sizes, dtype=torch.float64)
    is_regression = kind == "regression"
    pooled, own = _squared_errors(data) if is_regression else _cross_entropies(data, classes, iterations)
    own_loss = float((sizes / sizes.sum()) @ own)
    return Heterogeneity(
        gamma=max(0.0, pooled - own_loss),  # rounding may make it negative
        pooled_loss=pooled,
        own_loss=own_loss,
        iterations=0 if is_regression else iterations,
        gamma_by_chance=min(pooled, _expected_gap(data) * (pooled if is_regression else (classes - 1) / 2)),
        label_distance=None if is_regression else label_distance(data, classes),
    )


def measure_table_heterogeneity(table: Table, ranges: Ranges, *, client: str, label: str) -> Heterogeneity:
    """Measure the heterogeneity of all rows of a user's table."""
    encoding = Encoding.from_ranges(table, ranges, client=client, label=label)
    rows = encode_table(table, encoding)
    kind: Kind = "classification" if isinstance(encoding.label, Values) else "regression"
    return measure_heterogeneity(Federation(*rows.tensors(), rows.sizes), kind, encoding.label.width)


def label_distance(data: Federation, classes: int) -> float:
    """Return the mean over clients of ½Σ|p_k(c) − p(c)| over the classes c: 0 for equal frequencies, always below 1."""
    targets = data.targets if data.order is None else data.targets[data.order]
    owner = torch.repeat_interleave(torch.tensor(data.sizes))
    counts = torch.zeros(len(data.sizes), classes, dtype=torch.float64)
    counts.index_put_((owner, targets.cpu()), torch.ones(len(targets), dtype=torch.float64), accumulate=True)
    own, pooled = counts / counts.sum(dim=1, keepdim=True), counts.sum(dim=0) / counts.sum()
    return float(((own - pooled).abs().sum(dim=1) / 2).mean())


def _expected_gap(data: Federation) -> float:
    """Return (K − 1)·r/n for K clients, n examples and inputs of rank r.

    Clients with one common distribution gain this share of the noise's variance by fitting models of their own. In
    likelihood they gain half of it for each class but one (Wilks 1938).
    """
    rows = _with_intercept(data.examples_at(torch.arange(sum(data.sizes)))[0], 1)
    rank = int(torch.linalg.matrix_rank(rows.T @ rows, rtol=ROUNDING**2, hermitian=True))
    return (len(data.sizes) - 1) * rank / len(rows)


def _squared_errors(data: Federation) -> tuple[float, Tensor]:
    """Return the least mean squared error on all data and on each client's data, in closed form."""
    inputs, targets = data.examples_at(torch.arange(sum(data.sizes)))
    rows, outputs = _with_intercept(inputs, 1), targets.double().reshape(len(targets), -1)
    sizes = list(data.sizes)
    own = map(_least_squares, torch.split(rows, sizes), torch.split(outputs, sizes))
    return _least_squares(rows, outputs), torch.tensor(list(own), dtype=torch.float64)


def _least_squares(inputs: Tensor, targets: Tensor) -> float:
    best = torch.linalg.lstsq(inputs, targets, rcond=ROUNDING, driver="gelsd").solution
    return float((inputs @ best - targets).square().mean())


def _cross_entropies(data: Federation, classes: int, iterations: int) -> tuple[float, Tensor]:
    """Return the loss of logistic regression on all data, and each client's loss after continuing on its own data.

    Each client starts from the common model and never ends worse, so Γ can't be negative.
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
    """Minimise each client's loss by accelerated gradient descent (Nesterov 1983); return models and mean losses.

    The step is 1 over a bound on the curvature: half the mean squared norm of an example's inputs. A client whose loss
    did not decrease keeps the start.
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
    before_loss, after_loss = (_losses(inputs, targets, weights, candidate) for candidate in (start, model))
    is_better = after_loss <= before_loss
    return torch.where(is_better[:, None, None], model, start), torch.where(is_better, after_loss, before_loss)


def _losses(inputs: Tensor, targets: Tensor, weights: Tensor, model: Tensor) -> Tensor:
    losses = functional.cross_entropy((inputs @ model).transpose(1, 2), targets, reduction="none")
    return (weights * losses).sum(dim=1)


def _with_intercept(inputs: Tensor, dimensions: int) -> Tensor:
    """Flatten all but the first `dimensions`, convert to double precision, and append a constant 1."""
    flat = inputs.double().reshape(*inputs.shape[:dimensions], -1)
    return torch.cat([flat, torch.ones_like(flat[..., :1])], dim=-1)
