"""Run all tests with the lowest or the newest versions that pyproject.toml allows, and write docs/versions.md.

python tools/version_tests.py floors                        # make test-floors
python tools/version_tests.py newest --python python3.13    # make test-newest PYTHON=python3.13
python tools/version_tests.py newest --part clients         # only the tests of real clients, in the same environment

Flower pins versions of libraries that we use too, so the tests run without it first, and those of real clients with it.
The environment is `.venv-floors-3.11` or the like; it is made on the first call and used again on the next.
"""

import argparse
import json
import subprocess
import sys
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "versions.md"
HEADER = """\
# Tested versions

`pyproject.toml` names the lowest version of each library that is supported, and no highest one unless a library's
internals are used. `make test` uses the versions of `constraints.txt`. Two more commands run all tests at both ends of
the ranges and write their part of this page (`tools/version_tests.py`):

- `make test-floors`: the lowest version of every library;
- `make test-newest`: the newest version of everything that the package index has, test tools included.

Both take `PYTHON=python3.13` or the like. Flower pins libraries that we use too, so all tests run without Flower, and
the tests of real clients run again with it; the table has the versions of the first.
"""
BUILT_FROM = ("test", "ray")  # the extras of the first run; `test` contains the others but `flower`
PARTS = {"tests": "All tests", "clients": "Real clients"}
DEPLOY_TESTS = ("tests/deploy", "-m", "deploy", "--dist", "loadfile", "--timeout", "900")
OLD_FAULTS = ("DeprecationWarning", "FutureWarning", "ResourceWarning")
RUNTIME = (
    "train",
    "report",
    "secure",
    "tables",
    "onnx",
    "flower",
    "ray",
    "check",
    "tensorboard",
    "mlflow",
    "tune",
    "verify",
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", choices=("floors", "newest"))
    parser.add_argument("--python", default=sys.executable, help="the interpreter of the environment")
    parser.add_argument("--part", choices=PARTS, help="run one part, and keep what the page says of the other")
    options = parser.parse_args()
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    needed, is_lowest = runtime_requirements(pyproject), options.versions == "floors"
    flower = next(each for each in needed if each.name == "flwr")
    series = run(options.python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
    folder, parts = ROOT / f".venv-{options.versions}-{series}", (options.part,) if options.part else PARTS
    python = install(folder, options.python, list(floor_pins(needed, pyproject, read_lock())) if is_lowest else [])
    # An old library may use what its newest dependency calls deprecated, or leave a file open: no concern of ours.
    quiet = [word for kind in OLD_FAULTS for word in ("-W", f"ignore::{kind}")] if is_lowest else []
    codes, outcomes = [], {}
    versions, newer = read_versions(python, needed), newer_versions(python, needed)
    if "tests" in parts:
        code, outcomes["tests"] = run_tests(python, quiet)
        codes.append(code)
    if "clients" in parts:
        run(python, "-m", "pip", "install", "--quiet", lowest_pin(flower) if is_lowest else str(flower))
        code, outcomes["clients"] = run_tests(python, [*quiet, *DEPLOY_TESTS])
        codes.append(code)
        versions |= read_versions(python, [flower])
        newer |= newer_versions(python, [flower])
    write_section(options.versions, series, list(section_lines(needed, versions, newer, outcomes)), parts)
    return max(codes)


def install(folder: Path, interpreter: str, pins: Sequence[str]) -> str:
    """Make the environment without Flower, with these versions and else the newest; return its interpreter."""
    if not folder.exists():
        run(interpreter, "-m", "venv", str(folder))
    python, limits = str(folder / "bin" / "python"), folder / "constraints.txt"
    limits.write_text("".join(f"{pin}\n" for pin in pins), encoding="utf-8")
    run(python, "-m", "pip", "uninstall", "--quiet", "--yes", "flwr")
    upgrade = ("--upgrade", "--upgrade-strategy", "eager", "--constraint", str(limits))
    run(python, "-m", "pip", "install", "--quiet", *upgrade, "--editable", f".[{','.join(BUILT_FROM)}]")
    return python


def read_lock() -> str:
    """Return the text of the lock."""
    return (ROOT / "constraints.txt").read_text(encoding="utf-8")


def runtime_requirements(pyproject: Mapping[str, Any]) -> list[Requirement]:
    """Return what the package and its extras need at run time, without its own extras and the test tools."""
    project = pyproject["project"]
    lines = [*project["dependencies"], *(line for extra in RUNTIME for line in project["optional-dependencies"][extra])]
    return [each for each in map(Requirement, lines) if each.name != project["name"]]


def lowest_pin(requirement: Requirement) -> str:
    """Return the requirement at the lowest version that it allows.

    Raises:
        ValueError: If it names no lowest version.
    """
    floors = [limit.version for limit in requirement.specifier if limit.operator in (">=", "==")]
    if not floors:
        raise ValueError(f"pyproject.toml must name the lowest version of {requirement.name} that passes the tests.")
    return f"{requirement.name}=={max(floors, key=Version)}"


def floor_pins(needed: Iterable[Requirement], pyproject: Mapping[str, Any], lock: str) -> Iterator[str]:
    """Yield the lowest version of what is needed at run time, and the locked version of the test tools."""
    pins = {canonicalize_name(each.name): lowest_pin(each) for each in needed if each.name != "flwr"}
    yield from pins.values()
    extra = pyproject["project"]["optional-dependencies"]["test"]
    tools = {canonicalize_name(Requirement(line).name) for line in extra}
    for line in lock.splitlines():
        name = canonicalize_name(line.partition("==")[0])
        if name in tools and name not in pins:
            yield line


def run_tests(python: str, arguments: Sequence[str]) -> tuple[int, str]:
    """Run pytest, and return its exit code and its line of counts."""
    lines = []
    command = [python, "-m", "pytest", "-q", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as tests:
        assert tests.stdout is not None
        for line in tests.stdout:
            sys.stdout.write(line)
            lines.append(line.strip())
    return tests.returncode, next((line for line in reversed(lines) if " passed" in line or " failed" in line), "")


def read_versions(python: str, needed: Iterable[Requirement]) -> dict[str, str]:
    """Return the installed version of each library."""
    installed = json.loads(run(python, "-m", "pip", "list", "--format", "json"))
    by_name = {canonicalize_name(each["name"]): each["version"] for each in installed}
    names = {each.name: canonicalize_name(each.name) for each in needed}
    return {name: by_name[key] for name, key in names.items() if key in by_name}


def newer_versions(python: str, needed: Iterable[Requirement]) -> dict[str, str]:
    """Return the newest version of each library of which the index has a newer one than is installed."""
    outdated = json.loads(run(python, "-m", "pip", "list", "--outdated", "--format", "json"))
    names = {canonicalize_name(each.name): each.name for each in needed}
    newest = {canonicalize_name(each["name"]): each["latest_version"] for each in outdated}
    return {name: newest[key] for key, name in names.items() if key in newest}


def section_lines(
    needed: Iterable[Requirement],
    versions: Mapping[str, str],
    newer: Mapping[str, str],
    outcomes: Mapping[str, str],
) -> Iterator[str]:
    """Yield the lines of one environment: when it was tried, what came out, and which versions it had."""
    commit = run("git", "-C", str(ROOT), "rev-parse", "--short", "HEAD").strip()
    for part, title in PARTS.items():
        when = f"{datetime.now(UTC):%Y-%m-%d}, commit {commit}"
        yield f"- {title}: {outcomes[part]} ({when})." if part in outcomes else f"- {title}: not tried."
    yield from ("", "| library | supported | tried | newest |", "|---|---|---|---|")
    for each in sorted(needed, key=lambda each: each.name):
        tried = versions.get(each.name, "not installed")
        yield f"| {each.name} | {each.specifier} | {tried} | {newer.get(each.name, tried)} |"


def write_section(versions: str, series: str, lines: Sequence[str], parts: Iterable[str] = PARTS) -> None:
    """Replace the section of this environment on the page, or add it. What it says of other parts is kept."""
    title = f"## {'Lowest' if versions == 'floors' else 'Newest'} versions, Python {series}"
    page = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else HEADER
    _, *sections = page.split("\n## ")
    kept = {f"## {section.partition(chr(10))[0]}": section.partition("\n")[2].strip() for section in sections}
    kept[title] = "\n".join(merge_parts(kept.get(title, "").splitlines(), lines, set(parts)))
    body = "".join(f"\n{name}\n\n{kept[name]}\n" for name in sorted(kept))
    PAGE.write_text(HEADER + body, encoding="utf-8")


def merge_parts(before: Sequence[str], now: Sequence[str], parts: Collection[str]) -> list[str]:
    """Return the new lines, with the old ones for a part that was not run: its outcome, and the row of its library."""

    def of_part(line: str) -> str:
        return "clients" if line.startswith((f"- {PARTS['clients']}:", "| flwr ")) else "tests"

    def kind(line: str) -> str:
        return line.split(":")[0] if line.startswith("- ") else line.split("|")[1] if line.startswith("| ") else line

    old = {kind(line): line for line in before}
    return [line if of_part(line) in parts else old.get(kind(line), line) for line in now]


def run(*command: str) -> str:
    """Run a command in the repository and return what it prints."""
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
