"""Differentially private federated learning whose ε you can believe."""

import importlib
from typing import Any

__version__ = "0.1.0"

_WHERE = {
    "Person": "discreet.privacy.release",
    "Privacy": "discreet.experiment.promise",
    "Run": "discreet.experiment.api",
    "clients_from_arrays": "discreet.tasks",
    "clients_from_csv": "discreet.tasks",
    "clients_from_datasets": "discreet.tasks",
    "clients_from_parquet": "discreet.tasks",
    "convex_local": "discreet.algorithms",
    "ddp_fedavg": "discreet.algorithms",
    "ddp_fedavg_client": "discreet.algorithms",
    "denoised_release": "discreet.algorithms",
    "dp_fedavg": "discreet.algorithms",
    "dp_fedavg_blur": "discreet.algorithms",
    "dp_fedavg_blurs": "discreet.algorithms",
    "dp_fedsam": "discreet.algorithms",
    "dp_fedsam_top": "discreet.algorithms",
    "fed_smp_rand": "discreet.algorithms",
    "fed_smp_top": "discreet.algorithms",
    "fedavg": "discreet.algorithms",
    "fedprox": "discreet.algorithms",
    "fedsgd": "discreet.algorithms",
    "fl_sgd_gaussian": "discreet.algorithms",
    "ldp_fedavg": "discreet.algorithms",
    "load": "discreet.experiment.api",
    "pfl": "discreet.algorithms",
    "proximal_local": "discreet.algorithms",
    "shards": "discreet.algorithms",
    "train": "discreet.experiment.api",
}

__all__ = ["__version__", *_WHERE]


def __getattr__(name: str) -> Any:
    """Each public name is fetched when it is first used: `import discreet` costs nothing, and torch takes a second."""
    if name not in _WHERE:
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    return getattr(importlib.import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
