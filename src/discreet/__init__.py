"""Differentially private federated learning whose ε you can believe."""

import importlib
from typing import Any

__version__ = "0.2.0"

_WHERE = {
    "Person": "discreet.privacy.release",
    "Privacy": "discreet.experiment.promise.promise",
    "Run": "discreet.experiment.api",
    "clients_from_arrays": "discreet.data.tasks.from_arrays",
    "clients_from_csv": "discreet.data.tables.table_task",
    "clients_from_datasets": "discreet.data.tasks.from_arrays",
    "clients_from_parquet": "discreet.data.tables.table_task",
    "convex_local": "discreet.algorithms.recipes.local_schemes",
    "ddp_fedavg": "discreet.algorithms.recipes.ddp_fedavg",
    "ddp_fedavg_client": "discreet.algorithms.recipes.ddp_fedavg",
    "denoised_release": "discreet.algorithms.recipes.local_schemes",
    "dp_fedavg": "discreet.algorithms.recipes.dp_fedsam",
    "dp_fedavg_blur": "discreet.algorithms.recipes.dp_fedsam",
    "dp_fedavg_blurs": "discreet.algorithms.recipes.dp_fedsam",
    "dp_fedsam": "discreet.algorithms.recipes.dp_fedsam",
    "dp_fedsam_top": "discreet.algorithms.recipes.dp_fedsam",
    "fed_smp_rand": "discreet.algorithms.recipes.dp_fedsam",
    "fed_smp_top": "discreet.algorithms.recipes.dp_fedsam",
    "fedavg": "discreet.algorithms.recipes.registry",
    "fedprox": "discreet.algorithms.recipes.registry",
    "fedsgd": "discreet.algorithms.recipes.registry",
    "fl_sgd_gaussian": "discreet.algorithms.recipes.fl_sgd_gaussian",
    "ldp_fedavg": "discreet.algorithms.recipes.ldp_fedavg",
    "load": "discreet.experiment.api",
    "pfl": "discreet.algorithms.recipes.registry",
    "proximal_local": "discreet.algorithms.recipes.local_schemes",
    "shards": "discreet.algorithms.recipes.local_schemes",
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
