"""Write constraints.txt: the exact version of everything that `make` may install, resolved together by pip.

python tools/lock.py           # the newest versions that fit together
python tools/lock.py --keep    # the locked versions, and new ones only where pyproject.toml asks for them
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
LOCK = ROOT / "constraints.txt"
HEADER = """\
# The lock: the exact version of everything that `make` may install, over all extras.
# Made by `make lock`; edit pyproject.toml and make it anew instead of editing this file.
"""
TORCH = "torch==2.13.0"  # pyproject.toml allows more; this is what is tested


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", action="store_true", help="keep the versions that are locked now")
    kept = LOCK if parser.parse_args().keep else None
    pins = lock_lines(resolve(requirements(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))), kept))
    LOCK.write_text(HEADER + "".join(f"{pin}\n" for pin in pins), encoding="utf-8")
    sys.stdout.write(f"{LOCK.name}: {len(pins)} versions\n")


def requirements(pyproject: dict[str, Any]) -> list[str]:
    """Return all requirements: of the build, the package and every extra, without the package's own extras."""
    project = pyproject["project"]
    extras = [each for extra in project["optional-dependencies"].values() for each in extra]
    needed = [*pyproject["build-system"]["requires"], *project["dependencies"], *extras, TORCH]
    return [each for each in needed if not each.startswith(f"{project['name']}[")]


def resolve(wanted: list[str], kept: Path | None = None) -> dict[str, Any]:
    """Return pip's report of what it would install into an empty environment, on this Python and this machine."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        limits = [] if kept is None else ["--constraint", str(kept)]
        subprocess.run([*command, "--report", str(report), *limits, *wanted], check=True)
        found: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
        return found


def lock_lines(report: dict[str, Any]) -> list[str]:
    """Return the sorted lines name==version, without a build tag such as +cpu."""
    pins = {}
    for each in report["install"]:
        name = re.sub(r"[-_.]+", "-", each["metadata"]["name"]).lower()
        pins[name] = each["metadata"]["version"].partition("+")[0]
    return [f"{name}=={version}" for name, version in sorted(pins.items())]


if __name__ == "__main__":
    main()
