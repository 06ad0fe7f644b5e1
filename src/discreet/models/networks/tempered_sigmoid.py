"""The tempered sigmoid (Papernot et al. 2021) as a layer."""

import torch
from torch import Tensor, nn


class TemperedSigmoid(nn.Module):
    """The function φ(z) = s / (1 + exp(−temperature·z)) − o."""

    def __init__(self, s: float = 2.0, temperature: float = 2.0, o: float = 1.0) -> None:
        super().__init__()
        self.s, self.temperature, self.o = s, temperature, o

    def forward(self, z: Tensor) -> Tensor:
        """Apply the function to each element."""
        return self.s * torch.sigmoid(self.temperature * z) - self.o  # sigmoid() never overflows, unlike exp(−z)

    def extra_repr(self) -> str:
        """Describe the layer in the representation of a network."""
        return f"s={self.s:g}, temperature={self.temperature:g}, o={self.o:g}"
