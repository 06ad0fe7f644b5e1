"""A pilot: the constants that Theorem 3 of Fu et al. 2021 assumes about clients' losses, measured on data.

A pilot reads the data itself, without noise. Use public or synthetic data: on private data no ε covers this release.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from discreet.algorithms.training.batches import Batch
from discreet.data.federation import Federation
from discreet.errors import InvalidInput
from discreet.planning.theory.fu_convergence import Constants
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import RunKey

ITERATIONS = 100  # of the gradient descent whose gradients are measured
MIN_CONVEXITY = 1e-9  # μ/λ: less is indistinguishable from a loss that is flat somewhere
PILOT_NOT_COVERED = "A pilot reads the data without noise: on private data no epsilon covers it."


class PilotResult(NamedTuple):
    """What a pilot measured.

    Attributes:
        constants: Theorem 3's constants, for models that start at zero.
        best: The best model of all clients together.
        largest_l1: The largest L1 norm of a gradient.
        losses: The loss of each client.
    """

    constants: Constants
    best: Tensor
    largest_l1: float
    losses: "Losses"

    def clip_norm(self, noise: str) -> float:
        """Return the least ζ that clips no measured gradient: in L1 for Laplace noise, in L2 for Gaussian noise."""
        return self.largest_l1 if noise == "laplace" else self.constants.gradient_bound


def synthetic_clients(
    clients: int,
    parameters: int,
    *,
    examples: int = 80,
    distance: float = 13.0,
    spread: float = 4.0,
    noise: float = 1.0,
    seed: int = 0,
) -> Federation:
    """Generate clients with a linear regression each: y = x·(w + w_l) + noise, without an intercept.

    Inputs are standard normal; w has norm `distance`, and w_l is random with mean square norm `spread`².
    """
    generator = RunKey.from_seed(seed).generator(Purpose.PILOT)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    inputs = normal(clients, examples, parameters)
    common = torch.full((parameters,), distance / parameters**0.5, dtype=torch.float64)
    own = common + spread / parameters**0.5 * normal(clients, parameters)
    targets = torch.einsum("cnp,cp->cn", inputs, own) + noise * normal(clients, examples)
    return Federation(inputs.flatten(0, 1), targets.flatten(), (examples,) * clients)


def run_pilot(data: Federation, ridge: float = 0.0, iterations: int = ITERATIONS) -> PilotResult:
    """Measure the constants of linear regression on these clients: f_l(θ) = mean (x·θ − y)² + (ridge/2)·‖θ‖².

    μ and λ are the smallest and the largest eigenvalue of any client's Hessian; Γ and θ* have closed forms. G is the
    largest norm of a client's gradient during gradient descent of all clients without noise, with Theorem 3's learning
    rate; noise may lead to larger ones.

    Raises:
        InvalidInput: Some client's loss is not strongly convex.
    """
    losses = Losses.from_federation(data, ridge)
    eigenvalues = torch.linalg.eigvalsh(losses.hessians)
    convexity, smoothness = float(eigenvalues.min()), float(eigenvalues.max())
    if not convexity > MIN_CONVEXITY * smoothness:
        raise InvalidInput(
            "Some client's loss is not strongly convex: it has too few examples, or inputs that depend on each other.",
            fix="Give a ridge above 0, or clients more examples than there are parameters.",
        )
    best, own = losses.pooled_best(), losses.own_best()
    heterogeneity = float(losses.weights @ (losses.values(best.expand_as(own)) - losses.values(own)))
    l1, l2 = losses.largest_gradients(2 / convexity, 8 * smoothness / convexity, iterations)
    constants = Constants(
        convexity=convexity,
        smoothness=smoothness,
        gradient_bound=l2,
        heterogeneity=max(0.0, heterogeneity),  # rounding may make it negative
        start=float(best.square().sum()),
    )
    return PilotResult(constants, best, l1, losses)


class Losses(NamedTuple):
    """Each client's loss as ½θ·Hθ − c·θ + a constant, one row per client, and its share of all examples."""

    hessians: Tensor
    slopes: Tensor
    rest: Tensor
    weights: Tensor

    @classmethod
    def from_federation(cls, data: Federation, ridge: float) -> "Losses":
        batch: Batch = data.block(range(len(data.sizes))).full_batch()
        sizes = batch.mask.sum(dim=1).double()
        inputs = batch.inputs.double().flatten(2) * batch.mask[..., None]
        targets = batch.targets.double().reshape(batch.mask.shape) * batch.mask
        flat = torch.eye(inputs.shape[2], dtype=torch.float64)
        return cls(
            2 * torch.einsum("cni,cnj->cij", inputs, inputs) / sizes[:, None, None] + ridge * flat,
            2 * torch.einsum("cni,cn->ci", inputs, targets) / sizes[:, None],
            targets.square().sum(dim=1) / sizes,
            sizes / sizes.sum(),
        )

    def values(self, models: Tensor) -> Tensor:
        """Return each client's loss at its own row of `models`."""
        curved = torch.einsum("ci,cij,cj->c", models, self.hessians, models) / 2
        return curved - (self.slopes * models).sum(dim=1) + self.rest

    def gradients(self, model: Tensor) -> Tensor:
        return self.hessians @ model - self.slopes

    def pooled_best(self) -> Tensor:
        hessian = torch.einsum("c,cij->ij", self.weights, self.hessians)
        best: Tensor = torch.linalg.solve(hessian, self.weights @ self.slopes)
        return best

    def own_best(self) -> Tensor:
        own: Tensor = torch.linalg.solve(self.hessians, self.slopes)
        return own

    def largest_gradients(self, rate: float, gamma: float, iterations: int) -> tuple[float, float]:
        """Return the largest gradient norms in L1 and in L2 during gradient descent from zero."""
        model, l1, l2 = torch.zeros_like(self.slopes[0]), 0.0, 0.0
        for k in range(iterations + 1):
            gradients = self.gradients(model)
            l1 = max(l1, float(gradients.abs().sum(dim=1).max()))
            l2 = max(l2, float(gradients.norm(dim=1).max()))
            model = model - rate / (k + gamma) * (self.weights @ gradients)
        return l1, l2
