"""What an update may reveal."""

from typing import Annotated, TypeAlias

from pydantic import Field

from discreet.mechanisms.adaptive import AdaptiveGaussian
from discreet.mechanisms.distributed import DistributedGaussian
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.integers import IntegerNoise
from discreet.mechanisms.local import LocalNoise
from discreet.mechanisms.mechanism import Mechanism, State
from discreet.mechanisms.none import NoPrivacy

AnyMechanism: TypeAlias = Annotated[
    NoPrivacy | Gaussian | AdaptiveGaussian | DistributedGaussian | LocalNoise | IntegerNoise,
    Field(discriminator="kind"),
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
