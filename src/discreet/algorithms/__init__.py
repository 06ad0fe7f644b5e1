"""How the parts meet, and the papers' algorithms as compositions of them."""

from discreet.algorithms.algorithm import Algorithm, ServerState
from discreet.algorithms.catalog import RECIPES, fedavg, fedprox, fedsgd, pfl
from discreet.algorithms.local_schemes import convex_local, denoised_release, proximal_local, shards
from discreet.algorithms.paper_001 import fl_sgd_gaussian
from discreet.algorithms.paper_002 import ddp_fedavg, ddp_fedavg_client
from discreet.algorithms.paper_003 import ldp_fedavg
from discreet.algorithms.paper_004 import (
    dp_fedavg,
    dp_fedavg_blur,
    dp_fedavg_blurs,
    dp_fedsam,
    dp_fedsam_top,
    fed_smp_rand,
    fed_smp_top,
)

__all__ = [
    "RECIPES",
    "Algorithm",
    "ServerState",
    "convex_local",
    "ddp_fedavg",
    "ddp_fedavg_client",
    "denoised_release",
    "dp_fedavg",
    "dp_fedavg_blur",
    "dp_fedavg_blurs",
    "dp_fedsam",
    "dp_fedsam_top",
    "fed_smp_rand",
    "fed_smp_top",
    "fedavg",
    "fedprox",
    "fedsgd",
    "fl_sgd_gaussian",
    "ldp_fedavg",
    "pfl",
    "proximal_local",
    "shards",
]
