"""Sparsifiers: which coordinates of an update are sent."""

from typing import Annotated, TypeAlias

from pydantic import Field

from discreet.algorithms.sparsifiers.common_mask import PublicTopK, RandomK
from discreet.algorithms.sparsifiers.sparsifier import AllCoordinates, PublicUpdate, Sparsifier
from discreet.algorithms.sparsifiers.top_k import PublishedTopK, ServerTopK, TopK
from discreet.own_part import OwnPart

AnySparsifier: TypeAlias = Annotated[
    AllCoordinates | RandomK | TopK | PublicTopK | ServerTopK | PublishedTopK,
    Field(discriminator="kind"),
    OwnPart(Sparsifier),
]

__all__ = [
    "AllCoordinates",
    "AnySparsifier",
    "PublicTopK",
    "PublicUpdate",
    "PublishedTopK",
    "RandomK",
    "ServerTopK",
    "Sparsifier",
    "TopK",
]
