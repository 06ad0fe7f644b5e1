"""Which of a user's own parts a guarantee rests on: nothing that they declare of themselves is certified."""

from dataclasses import fields
from typing import TYPE_CHECKING

from discreet.user_part import UserPart, user_parts

if TYPE_CHECKING:
    from discreet.algorithms.algorithm import Algorithm


def client_parts(algorithm: "Algorithm") -> list[UserPart]:
    """List the user's parts that clients run: all but the server optimiser, which sees only what noise protects."""
    parts = [getattr(algorithm, field.name) for field in fields(algorithm) if field.name != "server"]
    return [own for part in parts for own in user_parts(part)]


def undeclared_parts(algorithm: "Algorithm") -> list[UserPart]:
    """List the user's parts that decide what is released and declare nothing: no release can be stated with them."""
    return [own for own in client_parts(algorithm) if not own.contract.is_postprocessing and not own.is_declared]


def trusted_parts(algorithm: "Algorithm") -> list[UserPart]:
    """List the user's parts on whose word a guarantee would be given.

    A learning rate schedule scales the noise with the update, and counts only where the bound on an update follows from
    the learning rate.
    """
    mechanism = algorithm.mechanism
    bounded = mechanism.is_private and (mechanism.unit == "example" or algorithm.sensitivity(0) is not None)
    return [own for own in client_parts(algorithm) if bounded or not own.contract.is_postprocessing]
