"""Activation functions, and their names in experiment files. Bounded ones suit DP-SGD (Papernot et al. 2021)."""

from typing import Annotated, Any, Literal, TypeAlias

import torch
from pydantic import BeforeValidator, Discriminator, Tag
from torch import Tensor, nn

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


LAYERS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "tanh": nn.Tanh, "gelu": nn.GELU}


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


class TemperedSigmoid(nn.Module):
    """The tempered sigmoid as a layer."""

    def __init__(self, s: float = 2.0, temperature: float = 2.0, o: float = 1.0) -> None:
        super().__init__()
        self.s, self.temperature, self.o = s, temperature, o

    def forward(self, z: Tensor) -> Tensor:
        """Apply the function to each element."""
        return self.s * torch.sigmoid(self.temperature * z) - self.o  # sigmoid() never overflows, unlike exp(−z)

    def extra_repr(self) -> str:
        """Describe the layer in the representation of a network."""
        return f"s={self.s:g}, temperature={self.temperature:g}, o={self.o:g}"


def activation_layer(activation: AnyActivation) -> nn.Module:
    """Build a new layer, one for each use in a network."""
    if isinstance(activation, TemperedActivation):
        return TemperedSigmoid(activation.s, activation.temperature, activation.o)
    return LAYERS[activation]()
