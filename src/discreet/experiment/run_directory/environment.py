"""The versions and the machine that a run was made with, for reproducing its numbers."""

import json
import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version

import torch

from discreet.code_version import read_code_version
from discreet.extras import is_installed

PACKAGES = ("torch", "numpy", "dp-accounting", "safetensors")


def describe_environment(device: torch.device) -> str:
    """Return environment.json."""
    code = read_code_version()
    environment = {
        "discreet": code.version,
        "commit": code.commit,
        "dirty": code.dirty,
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES if is_installed(name.replace("-", "_"))},
        "system": platform.system(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return json.dumps(environment, indent=2) + "\n"
