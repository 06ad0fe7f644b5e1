"""The versions and the machine that a run was made with, for reproducing its numbers."""

import importlib.metadata
import json
import os
import platform
from datetime import UTC, datetime

import torch

from discreet import __version__

PACKAGES = ("torch", "numpy", "scipy", "dp-accounting", "safetensors")


def describe_environment(device: torch.device) -> str:
    """Return environment.json."""
    environment = {
        "discreet": __version__,
        "python": platform.python_version(),
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
        "system": platform.system(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return json.dumps(environment, indent=2) + "\n"
