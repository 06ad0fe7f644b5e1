"""How the parts meet, and the papers' algorithms as compositions of them."""

from discreet.algorithms.algorithm import Algorithm, ServerState
from discreet.algorithms.catalog import RECIPES, fedavg, fedprox, fedsgd, pfl
from discreet.algorithms.paper_001 import fl_sgd_gaussian
from discreet.algorithms.paper_003 import ldp_fedavg
from discreet.algorithms.paper_004 import (
    dp_fedavg,
    dp_fedavg_blur,
    dp_fedavg_blurs,
    dp_fedsam,
    dp_fedsam_top,
    fed_smp_rand,
)

__all__ = [
    "RECIPES",
    "Algorithm",
    "ServerState",
    "dp_fedavg",
    "dp_fedavg_blur",
    "dp_fedavg_blurs",
    "dp_fedsam",
    "dp_fedsam_top",
    "fed_smp_rand",
    "fedavg",
    "fedprox",
    "fedsgd",
    "fl_sgd_gaussian",
    "ldp_fedavg",
    "pfl",
]
