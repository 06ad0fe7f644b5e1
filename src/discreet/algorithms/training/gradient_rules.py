"""Options of local steps: perturbations (SAM), regularisers (BLUR, FedProx) and gradient clips.

Each works on a block with one row for each client, and never waits for the device, so that a step can be recorded as a
CUDA graph.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, ClassVar, Literal, Protocol, TypeAlias

from pydantic import Field

from discreet.algorithms.clipping import clip
from discreet.lazy_torch import torch
from discreet.params import Params, add, map_params, norms, scale_rows, subtract
from discreet.part import ClipNorm, NonNegative, Positive, part

TINY = 1e-12  # avoids 0/0 for a gradient of zero


@part
class Sam:
    """Sharpness-aware minimisation (DP-FedSAM, Eq. 9): the gradient is taken at w + rho·g/‖g‖, on the same batch.

    The norm is over all tensors of one client. A step costs two gradients.
    """

    kind: Literal["sam"] = "sam"
    rho: NonNegative

    def perturb(self, params: Params, gradient: Params) -> Params:
        """Return the point at which the gradient is taken."""
        return add(params, scale_rows(self.rho / (norms(gradient) + TINY), gradient))


@part
class Asam:
    """Adaptive SAM, the default of DP-FedSAM's code: the gradient is taken at w + rho·w²·g/‖|w|·g‖.

    Large weights move more than small ones, so scaling a layer doesn't change what counts as sharp.
    """

    kind: Literal["asam"] = "asam"
    rho: NonNegative

    def perturb(self, params: Params, gradient: Params) -> Params:
        """Return the point at which the gradient is taken."""
        scaled = map_params(torch.mul, params, gradient)  # has the norm of |w|·g
        direction = map_params(torch.mul, params, scaled)
        return add(params, scale_rows(self.rho / (norms(scaled) + TINY), direction))


AnyPerturbation: TypeAlias = Annotated[Sam | Asam, Field(discriminator="kind")]


@part
class Blur:
    """Bounded local update regularisation (Cheng et al. 2022): (strength/2)·max(0, ‖w − w^t‖² − radius²).

    It does nothing inside the ball around the broadcast model w^t. With a radius of the clip norm, it pushes updates to
    norms that the clip doesn't change.
    """

    kind: Literal["blur"] = "blur"
    radius: Positive
    strength: NonNegative

    def gradient(self, params: Params, start: Params) -> Params:
        """Return the gradient of the regulariser at `params`."""
        away = subtract(params, start)
        distance = norms(away)
        return scale_rows((distance > self.radius).to(distance.dtype) * self.strength, away)


@part
class Prox:
    """FedProx's proximal term (Li et al. 2020): (strength/2)·‖w − w^t‖², a pull towards the broadcast model w^t."""

    kind: Literal["prox"] = "prox"
    strength: NonNegative

    def gradient(self, params: Params, start: Params) -> Params:
        """Return the gradient of the regulariser at `params`."""
        return map_params(lambda value, origin: self.strength * (value - origin), params, start)


AnyRegulariser: TypeAlias = Annotated[Blur | Prox, Field(discriminator="kind")]


class GradientClip(Protocol):
    """The contract of a gradient clip. A bound on updates follows from it, so nothing has a default."""

    @property
    @abstractmethod
    def bound(self) -> float:
        """The norm that no clipped gradient exceeds, whatever the gradient."""

    @property
    @abstractmethod
    def norm_order(self) -> int:
        """Order of the norm that `bound` is about: 1 or 2."""

    @abstractmethod
    def clip_gradient(self, gradient: Params) -> Params:
        """Return the clipped gradient. One with NaN or infinity becomes zero."""


@part
class L2Clip:
    """Scale each client's batch gradient down to an L2 norm of at most `bound`, for Gaussian noise (ζ in Fu et al.).

    Guarantee: this holds for any gradient; one with NaN or infinity counts as zero.
    """

    kind: Literal["l2"] = "l2"
    bound: ClipNorm
    norm_order: ClassVar[int] = 2

    def clip_gradient(self, gradient: Params) -> Params:
        return clip(gradient, self.bound)


@part
class L1Clip:
    """Scale each client's batch gradient down to an L1 norm of at most `bound`, for Laplace noise."""

    kind: Literal["l1"] = "l1"
    bound: ClipNorm
    norm_order: ClassVar[int] = 1

    def clip_gradient(self, gradient: Params) -> Params:
        return clip(gradient, self.bound, order=1)


AnyGradientClip: TypeAlias = Annotated[L2Clip | L1Clip, Field(discriminator="kind")]
