"""Write constraints.txt, the exact version of everything that `make` may install, and locks/, the same with hashes.

python tools/lock.py           # the newest versions that fit together
python tools/lock.py --keep    # the locked versions, and new ones only where pyproject.toml asks for them
python tools/lock.py --hashes  # constraints.txt stays as it is; only the files with hashes are written anew
"""

import argparse
import json
import platform
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
HASHED_HEADER = """\
# {what}
# With the hashes of every file that the package index has of each version, for all platforms. Made by `make lock`.
# pip install --require-hashes --requirement {path}
"""
HASHED = {
    "locks/all.txt": "Everything that `make` may install, over all extras.",
    "locks/flower.txt": "What a server or a node needs: the extra `flower`, without the package itself.",
}
TORCH = "torch==2.13.0"  # pyproject.toml allows more; this is what is tested


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", action="store_true", help="keep the versions that are locked now")
    parser.add_argument("--hashes", action="store_true", help="write only the files with hashes")
    options = parser.parse_args()
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    if not options.hashes:
        pins = lock_lines(resolve(requirements(pyproject), LOCK if options.keep else None))
        LOCK.write_text(HEADER + "".join(f"{pin}\n" for pin in pins), encoding="utf-8")
        sys.stdout.write(f"{LOCK.name}: {len(pins)} versions\n")
    wanted = {"locks/all.txt": requirements(pyproject), "locks/flower.txt": extra_requirements(pyproject, "flower")}
    for path, what in HASHED.items():
        text = HASHED_HEADER.format(what=what, path=path) + resolve_hashes(wanted[path])
        (ROOT / path).parent.mkdir(exist_ok=True)
        (ROOT / path).write_text(text, encoding="utf-8")
        sys.stdout.write(f"{path}: {len(read_hashes(text))} versions with hashes\n")


def requirements(pyproject: dict[str, Any]) -> list[str]:
    """Return all requirements: of the build, the package and every extra, without the package's own extras."""
    project = pyproject["project"]
    extras = [each for extra in project["optional-dependencies"].values() for each in extra]
    needed = [*pyproject["build-system"]["requires"], *project["dependencies"], *extras, TORCH]
    return [each for each in needed if not each.startswith(f"{project['name']}[")]


def extra_requirements(pyproject: dict[str, Any], extra: str) -> list[str]:
    """Return the requirements of the package with one of its extras, and with the extras which that names."""
    project, found, waiting = pyproject["project"], list(pyproject["project"]["dependencies"]), [extra]
    while waiting:
        for each in project["optional-dependencies"][waiting.pop()]:
            own = re.fullmatch(rf"{project['name']}\[(.*)\]", each)
            waiting += own[1].split(",") if own else []
            found += [] if own else [each]
    return [*found, TORCH]


def resolve_hashes(wanted: list[str]) -> str:
    """Return uv's lock of these requirements: the versions of constraints.txt, on all platforms, with hashes.

    On Linux torch brings libraries of CUDA, which are no part of constraints.txt where torch came without them.
    """
    command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal", "--generate-hashes"]
    shape = ["--no-header", "--no-annotate", "--python-version", platform.python_version()]
    limits = ["--constraint", str(LOCK), "-"]
    ran = subprocess.run(
        [*command, *shape, *limits], input="\n".join(wanted), stdout=subprocess.PIPE, text=True, check=True
    )
    return ran.stdout


def read_hashes(text: str) -> dict[str, list[str]]:
    """Return the hashes of each name==version of a lock; a name may have two versions, for two ranges of Python."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if pin := re.match(r"([a-z0-9.-]+==[^ ;]+)", line):
            found[pin[1]] = hashes = []
        elif one := re.match(r" +--hash=(sha256:[0-9a-f]{64})", line):
            hashes.append(one[1])
    return found


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
