"""Small pieces that local training takes: where a gradient is taken, what pulls it back, how large it may be.

Each works on a block, a row a client, and asks the device nothing, so a recorded step may hold it.
"""

from typing import Annotated, Literal, TypeAlias

import torch
from pydantic import Field

from discreet.algorithms.clipping import clip
from discreet.params import Params, add, map_params, norms, scale_rows, subtract
from discreet.part import NonNegative, Positive, part

TINY = 1e-12  # a gradient of zero perturbs nothing, instead of 0/0


@part
class Sam:
    """Sharpness-aware minimisation (paper 004, Eq. 9): the gradient is taken at w + rho·g/‖g‖, on the same batch.

    The norm is over all tensors of one client. A step then costs two gradients.
    """

    kind: Literal["sam"] = "sam"
    rho: NonNegative

    def perturb(self, params: Params, gradient: Params) -> Params:
        return add(params, scale_rows(self.rho / (norms(gradient) + TINY), gradient))


@part
class Asam:
    """Adaptive SAM, the default of paper 004's code: the gradient is taken at w + rho·w²·g/‖|w|·g‖.

    Large weights move more and small ones less, so scaling a layer doesn't change what counts as sharp.
    """

    kind: Literal["asam"] = "asam"
    rho: NonNegative

    def perturb(self, params: Params, gradient: Params) -> Params:
        scaled = map_params(torch.mul, params, gradient)  # its norm is that of |w|·g
        direction = map_params(torch.mul, params, scaled)
        return add(params, scale_rows(self.rho / (norms(scaled) + TINY), direction))


AnyPerturbation: TypeAlias = Annotated[Sam | Asam, Field(discriminator="kind")]


@part
class Blur:
    """Bounded local update regularisation (Cheng et al. 2022): (strength/2)·max(0, ‖w − w^t‖² − radius²).

    Inside the ball around the broadcast model w^t it does nothing. A radius of the clip norm asks for updates that
    the clip leaves alone.
    """

    kind: Literal["blur"] = "blur"
    radius: Positive
    strength: NonNegative

    def gradient(self, params: Params, start: Params) -> Params:
        away = subtract(params, start)
        distance = norms(away)
        return scale_rows((distance > self.radius).to(distance.dtype) * self.strength, away)


@part
class Prox:
    """FedProx's proximal term (Li et al. 2020): (strength/2)·‖w − w^t‖², a pull towards the broadcast model w^t."""

    kind: Literal["prox"] = "prox"
    strength: NonNegative

    def gradient(self, params: Params, start: Params) -> Params:
        return map_params(lambda value, origin: self.strength * (value - origin), params, start)


AnyRegulariser: TypeAlias = Annotated[Blur | Prox, Field(discriminator="kind")]


@part
class L2Clip:
    """Each client's batch gradient scaled down to an L2 norm of at most `bound` (paper 003's ζ, for Gaussian noise).

    Guarantee: it holds for any gradient; one that has NaN or infinity in it counts as zero.
    """

    kind: Literal["l2"] = "l2"
    bound: Positive

    def clip_gradient(self, gradient: Params) -> Params:
        return clip(gradient, self.bound)


@part
class L1Clip:
    """The same in the L1 norm, which Laplace noise needs."""

    kind: Literal["l1"] = "l1"
    bound: Positive

    def clip_gradient(self, gradient: Params) -> Params:
        return clip(gradient, self.bound, order=1)


AnyGradientClip: TypeAlias = Annotated[L2Clip | L1Clip, Field(discriminator="kind")]
