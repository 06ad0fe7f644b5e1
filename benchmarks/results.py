"""What the benchmarks share: the machine in words, and measurements kept as JSON beside the page made from them.

A run on a CPU and a run on a GPU happen on different machines. Each is one entry, by the kind of its device; a new run
replaces its own entry, and the page is rendered from all of them.
"""

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeAlias

FOLDER = Path(__file__).parents[1] / "docs" / "results"
DEVICES = {"cpu": "a CPU", "cuda": "a GPU"}

Entry: TypeAlias = dict[str, Any]  # what one run measured: "device", "machine", "versions", and its own
Entries: TypeAlias = dict[str, Entry]  # by device, in the order of DEVICES


def add_options(parser: argparse.ArgumentParser, name: str) -> None:
    """The options of a benchmark whose measurements come from more than one machine."""
    parser.add_argument("--json", action="store_true", help="print the measurements as one object")
    parser.add_argument("--write", action="store_true", help=f"also write docs/results/{name}.md anew")
    parser.add_argument(
        "--merge", type=Path, metavar="FILE", help="measure nothing: take the --json of a run made elsewhere, and write"
    )


def publish(
    name: str, arguments: argparse.Namespace, measure: Callable[[], Entry], page: Callable[[Entries], str]
) -> None:
    """Measure, or take what was measured elsewhere; keep it if that is asked for; print it."""
    entry = measure() if arguments.merge is None else read_entry(arguments.merge)
    if arguments.write or arguments.merge is not None:
        keep(name, entry, page)
    print(json.dumps(entry) if arguments.json else page({entry["device"]: entry}))


def read_entry(path: Path) -> Entry:
    """The entry in a file; whatever else lies there ends the program in one sentence."""
    try:
        entry = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        sys.exit(f"{path} can't be read as JSON: {error}")
    if not isinstance(entry, dict) or entry.get("device") not in DEVICES or not {"machine", "versions"} <= entry.keys():
        sys.exit(f"{path} must hold what this benchmark prints with --json, on a device of {', '.join(DEVICES)}.")
    return entry


def keep(name: str, entry: Entry, page: Callable[[Entries], str]) -> None:
    """Put the entry in the place of its device's last one, and write the page from all there are."""
    data = FOLDER / f"{name}.json"
    before = json.loads(data.read_text(encoding="utf-8")) if data.exists() else {}
    after = {**before, entry["device"]: entry}
    ordered = {device: after[device] for device in DEVICES if device in after}
    FOLDER.mkdir(parents=True, exist_ok=True)
    data.write_text(json.dumps(ordered, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    data.with_suffix(".md").write_text(page(ordered), encoding="utf-8")


def machine(device: str = "cpu") -> str:
    """The machine without its name: cores, or the GPU; the system and Python."""
    cores = f"{len(os.sched_getaffinity(0))} cores ({platform.machine()})"
    rest = f"{platform.system()}, Python {platform.python_version()}"
    if device == "cpu":
        return f"{cores}, {rest}"
    import torch

    return f"{torch.cuda.get_device_name()}, {cores}, {rest}"


def versions(*packages: str) -> dict[str, str]:
    """The versions of those that are installed."""
    found = {}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def provenance(machine: str, versions: Mapping[str, str]) -> str:
    return f"Machine: {machine}. Versions: {', '.join(f'{name} {number}' for name, number in versions.items())}."


def verdict(met: bool) -> str:
    return "met" if met else "**missed**"
