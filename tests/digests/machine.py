"""The kind of machine and the versions on which the last bits of a number depend."""

import platform
from importlib.metadata import version
from pathlib import Path

import torch


def describe_machine() -> dict[str, str]:
    return {
        "processor": _processor(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "libc": " ".join(platform.libc_ver()),
        **{package: version(package) for package in ("torch", "numpy", "scipy", "dp-accounting")},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())
