"""The noise shares that recipes ask for: integers for a secure sum, or real numbers for a trusted one."""

from typing import Literal, TypeAlias, TypedDict

from discreet.algorithms.aggregation import AnyAggregation, Lattice, Plain
from discreet.algorithms.mechanisms import AnyMechanism, DistributedGaussian, IntegerNoise
from discreet.errors import InvalidInput

ShareNoise: TypeAlias = Literal["skellam", "discrete_gaussian", "gaussian"]


class NoiseParts(TypedDict):
    """The mechanism and the aggregation that go together."""

    mechanism: AnyMechanism
    aggregation: AnyAggregation


def distributed_noise(
    noise: ShareNoise,
    noise_multiplier: float | None,
    *,
    clip_norm: float | None = None,
    bits: int | None = None,
    rotated: bool = False,
    colluding: int = 0,
    dropouts: int = 0,
) -> NoiseParts:
    """Build the mechanism that adds noise in shares, and the aggregation that sums them.

    Args:
        noise: The kind of noise.
        noise_multiplier: σ of the sum; None until it is computed from the promise.
        clip_norm: The norm that whole updates are clipped to. None protects single examples, which training bounds.
        bits: Bits of a coordinate in the secure sum. None: as many as the sum needs.
        rotated: Spread each update over its coordinates by a public rotation.
        colluding: Clients assumed to share their noise with the server.
        dropouts: Clients that may drop out of a round.

    Raises:
        InvalidInput: If `noise` is unknown, or "gaussian" is given with an argument of secure sums.
    """
    if noise not in ("skellam", "discrete_gaussian", "gaussian"):
        raise InvalidInput(f'noise must be "skellam", "discrete_gaussian" or "gaussian", and got {noise!r}.')
    if noise != "gaussian":
        integers = IntegerNoise(
            kind=noise,
            clip_norm=clip_norm,
            noise_multiplier=noise_multiplier,
            colluding=colluding,
            dropouts=dropouts,
        )
        return {"mechanism": integers, "aggregation": Lattice(bits=bits, rotated=rotated)}
    if colluding or dropouts or rotated or bits is not None:
        raise InvalidInput(
            'colluding, dropouts, bits and rotated are for secure sums, and noise = "gaussian" is for a trusted one.',
            fix='Use noise = "skellam", or leave them out.',
        )
    real = DistributedGaussian(clip_norm=clip_norm, noise_multiplier=noise_multiplier)
    return {"mechanism": real, "aggregation": Plain()}
