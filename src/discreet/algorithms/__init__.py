"""How the parts meet, and the papers' algorithms as compositions of them."""

from discreet.algorithms.algorithm import Algorithm, ServerState
from discreet.algorithms.catalog import RECIPES, dp_fedavg, fedavg, pfl

__all__ = ["RECIPES", "Algorithm", "ServerState", "dp_fedavg", "fedavg", "pfl"]
