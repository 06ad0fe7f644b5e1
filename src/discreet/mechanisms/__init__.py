"""What an update may reveal."""

from typing import Annotated, TypeAlias

from pydantic import Field

from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.mechanism import Mechanism, State
from discreet.mechanisms.none import NoPrivacy

AnyMechanism: TypeAlias = Annotated[NoPrivacy | Gaussian, Field(discriminator="kind")]

__all__ = ["AnyMechanism", "Gaussian", "Mechanism", "NoPrivacy", "State"]
