"""Activation functions, and their names in experiment files. Bounded ones suit DP-SGD (Papernot et al. 2021)."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Discriminator, Tag

from discreet.lazy_torch import nn
from discreet.part import Positive, Real, part


@part
class TemperedActivation:
    """The tempered sigmoid φ(z) = s / (1 + exp(−temperature·z)) − o. The defaults are tanh.

    Attributes:
        s: The scale.
        temperature: The inverse temperature.
        o: The offset.
    """

    kind: Literal["tempered_sigmoid"] = "tempered_sigmoid"
    s: Positive = 2.0
    temperature: Positive = 2.0
    o: Real = 1.0


LAYERS = {"relu": "ReLU", "tanh": "Tanh", "gelu": "GELU"}  # by the names of torch.nn


def _parse_activation(value: Any) -> Any:
    """Accept a name or a record. The name "tempered_sigmoid" is short for the record with its defaults."""
    if value == "tempered_sigmoid":
        return TemperedActivation()
    if isinstance(value, dict | TemperedActivation):
        return value
    if not isinstance(value, str) or value not in LAYERS:
        names = ", ".join(f"'{name}'" for name in LAYERS)
        raise ValueError(f"must be {names}, 'tempered_sigmoid' or a table of that kind, and got {value!r}")
    return value


AnyActivation: TypeAlias = Annotated[
    Annotated[Literal["relu", "tanh", "gelu"], Tag("word")] | Annotated[TemperedActivation, Tag("tempered_sigmoid")],
    Discriminator(lambda value: "word" if isinstance(value, str) else "tempered_sigmoid"),
    BeforeValidator(_parse_activation),
]


def activation_layer(activation: AnyActivation) -> nn.Module:
    """Build a new layer, one for each use in a network."""
    if isinstance(activation, TemperedActivation):
        from discreet.models.networks.tempered_sigmoid import TemperedSigmoid  # a module of torch

        return TemperedSigmoid(activation.s, activation.temperature, activation.o)
    layer: nn.Module = getattr(nn, LAYERS[activation])()
    return layer
