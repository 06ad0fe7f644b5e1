"""How updates are bounded, and which noise hides them."""

from typing import Annotated, TypeAlias

from pydantic import Field

from discreet.algorithms.mechanisms.adaptive_gaussian import AdaptiveGaussian
from discreet.algorithms.mechanisms.central_gaussian import Gaussian
from discreet.algorithms.mechanisms.distributed_gaussian import DistributedGaussian
from discreet.algorithms.mechanisms.integer_noise import IntegerNoise
from discreet.algorithms.mechanisms.local_mechanism import LocalNoise
from discreet.algorithms.mechanisms.mechanism import Mechanism, State
from discreet.algorithms.mechanisms.no_privacy import NoPrivacy
from discreet.own_part import OwnPart

AnyMechanism: TypeAlias = Annotated[
    NoPrivacy | Gaussian | AdaptiveGaussian | DistributedGaussian | LocalNoise | IntegerNoise,
    Field(discriminator="kind"),
    OwnPart(Mechanism),
]

__all__ = [
    "AdaptiveGaussian",
    "AnyMechanism",
    "DistributedGaussian",
    "Gaussian",
    "IntegerNoise",
    "LocalNoise",
    "Mechanism",
    "NoPrivacy",
    "State",
]
