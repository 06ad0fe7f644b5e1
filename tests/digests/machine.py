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
    """Name the processor with its family, model, stepping and cache: a virtual machine may hide its generation."""
    try:
        first = Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("\n\n")[0]
    except OSError:  # not Linux
        return platform.processor()
    pairs = (line.partition(":") for line in first.splitlines())
    facts = {name.strip(): value.strip() for name, _, value in pairs}
    shown = [f"{name} {facts[name]}" for name in ("cpu family", "model", "stepping", "cache size") if name in facts]
    return ", ".join([facts.get("model name", platform.processor()), *shown])
