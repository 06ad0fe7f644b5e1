"""Write constraints.txt: the exact version of everything that `make` may install, resolved together by pip."""

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
HEADER = """\
# The lock: the exact version of everything that `make` may install, over all extras.
# Made by `make lock`; edit pyproject.toml and make it anew instead of editing this file.
"""
TORCH = "torch==2.13.0"  # pyproject.toml allows more; this is what is tested
LATER = (  # what later extras will need, so that one lock covers them all
    "optuna",
    "mlflow-skinny",
    "tensorboard",
    "pyarrow",
    "randomgen",
    "cryptography",
    "tomlkit",
    "safetensors",
    "matplotlib",
    "scikit-learn",
)


def main(target: Path) -> None:
    pins = lock_lines(resolve(requirements(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8")))))
    target.write_text(HEADER + "".join(f"{pin}\n" for pin in pins), encoding="utf-8")
    sys.stdout.write(f"{target}: {len(pins)} versions\n")


def requirements(pyproject: dict[str, Any]) -> list[str]:
    """Return all requirements: of the build, the package, every extra, and those that come later."""
    project = pyproject["project"]
    extras = [each for extra in project.get("optional-dependencies", {}).values() for each in extra]
    return [*pyproject["build-system"]["requires"], *project["dependencies"], *extras, TORCH, *LATER]


def resolve(wanted: list[str]) -> dict[str, Any]:
    """Return pip's report of what it would install into an empty environment, on this Python and this machine."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        subprocess.run([*command, "--report", str(report), *wanted], check=True)
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
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "constraints.txt")
