"""Build a release and prove that it installs: `make release`. docs/releasing.md says how it is published.

It builds sdist and wheel, checks their metadata and content, and installs the wheel into two empty environments: the
core, which must work without torch and plotly, and everything, in which the demo and a short run must work. Their
cards must name the version and commit of the wheel.
"""

import argparse
import contextlib
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
import zipfile
from collections.abc import Iterator, Sequence
from email import message_from_bytes
from pathlib import Path

ROOT = Path(__file__).parent.parent
BUILT = "discreet/_built_version.toml"
CORE_MEGABYTES = 250
ABSENT_FROM_CORE = ("torch", "plotly", "matplotlib", "flwr", "ray", "dp_accounting", "cryptography")
NEEDED_METADATA = ("License-Expression", "License-File", "Author", "Keywords", "Classifier", "Description-Content-Type")
ACCOUNT = ("account", "gaussian", "--noise-multiplier", "1", "--sampling-rate", "0.1", "--steps", "1000")


class ReleaseRefused(Exception):
    """The release can't be made as it is."""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--allow-dirty", action="store_true", help="build a tree with uncommitted changes")
    parser.add_argument("--core-only", action="store_true", help="leave out the environment with all extras")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where sdist and wheel go")
    options = parser.parse_args(arguments)
    try:
        make_release(options.out, allow_dirty=options.allow_dirty, core_only=options.core_only)
    except ReleaseRefused as refusal:
        sys.stderr.write(f"No release: {refusal}\n")
        return 1
    return 0


def make_release(out: Path, *, allow_dirty: bool, core_only: bool) -> None:
    """Build, check, install and try; raise ReleaseRefused at the first thing that is not as it must be."""
    if not allow_dirty:
        check_tree(run("git", "-C", str(ROOT), "status", "--porcelain"))
    # The time of the commit for all files of a wheel, so that the same commit gives the same bytes.
    os.environ["SOURCE_DATE_EPOCH"] = run("git", "-C", str(ROOT), "log", "-1", "--format=%ct").strip()
    out.mkdir(parents=True, exist_ok=True)
    for old in (*out.glob("*.whl"), *out.glob("*.tar.gz")):
        old.unlink()
    with tempfile.TemporaryDirectory(prefix="discreet-release-") as scratch:
        folder = Path(scratch)
        with print_duration("sdist, and the wheel built from it"):
            run(sys.executable, "-m", "build", "--outdir", str(out), str(ROOT))
        wheel, sdist = find_one(out, "*.whl"), find_one(out, "*.tar.gz")
        with print_duration("the wheel built from the tree"):
            run(sys.executable, "-m", "build", "--wheel", "--outdir", str(folder / "direct"), str(ROOT))
        check_same_wheels(wheel, find_one(folder / "direct", "*.whl"))
        run(sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(sdist))
        check_wheel(wheel, run("git", "-C", str(ROOT), "ls-files", "src/discreet").splitlines())
        version, commit, dirty = read_built(wheel)
        check_version(version, run("git", "-C", str(ROOT), "tag", "--points-at", "HEAD").split())
        code = {"discreet": version, "commit": commit, "dirty": dirty}
        with print_duration("the core in an empty environment"):
            try_core(folder / "core", wheel, code)
        if not core_only:
            with print_duration("everything in an empty environment"):
                try_everything(folder / "everything", wheel, code)
    for path in (wheel, sdist):
        say(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB, sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}")
    say(
        f"discreet {version} can be released from commit {commit}."
        if is_final(version)
        else f"discreet {version} is a rehearsal: a version is cut by a tag (docs/releasing.md)."
    )


def check_tree(status: str) -> None:
    """Refuse a tree with changed or unknown files: the wheel could hold what no commit has."""
    if status.strip():
        raise ReleaseRefused(f"the tree has uncommitted changes: {', '.join(status.split()[1::2][:5])}. Commit them.")


def check_version(version: str, tags: Sequence[str], changelog: str | None = None) -> None:
    """Check that a tagged commit is built as its tag, and that the changelog has a section for it."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8") if changelog is None else changelog
    named = [tag.removeprefix("v") for tag in tags if re.fullmatch(r"v\d.*", tag)]
    if named and version not in named:
        raise ReleaseRefused(f"the tag says {named[0]}, and the build says {version}.")
    if is_final(version) and f"\n## [{version}] - " not in text:
        raise ReleaseRefused(f"CHANGELOG.md has no dated section for {version}.")


def is_final(version: str) -> bool:
    """Whether this is the version of a tag, and not of a commit between two."""
    return ".dev" not in version and "+" not in version


def check_wheel(wheel: Path, tracked: Sequence[str]) -> None:
    """Check that a wheel holds every file of the package and nothing else, and that its metadata is complete."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        info = next(name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = message_from_bytes(archive.read(info))
    packaged = {name for name in names if ".dist-info/" not in name}
    expected = {path.removeprefix("src/") for path in tracked} | {BUILT}
    if missing := sorted(expected - packaged):
        raise ReleaseRefused(f"the wheel lacks {', '.join(missing)}. Name them in [tool.setuptools.package-data].")
    if foreign := sorted(packaged - expected):
        raise ReleaseRefused(f"the wheel holds what is not in the package: {', '.join(foreign[:5])}.")
    if empty := [name for name in NEEDED_METADATA if not metadata.get(name)]:
        raise ReleaseRefused(f"the wheel's metadata lacks {', '.join(empty)}.")


def check_same_wheels(one: Path, other: Path) -> None:
    """Check that both wheels hold the same files with the same bytes."""
    if one.name != other.name:
        raise ReleaseRefused(f"the sdist builds {one.name}, and the tree {other.name}.")
    with zipfile.ZipFile(one) as first, zipfile.ZipFile(other) as second:
        names = set(first.namelist()) | set(second.namelist())
        contents = [{name: archive.read(name) for name in archive.namelist()} for archive in (first, second)]
    if unlike := sorted(name for name in names if contents[0].get(name) != contents[1].get(name)):
        raise ReleaseRefused(f"the sdist and the tree build wheels that differ in {', '.join(unlike[:5])}.")


def read_built(wheel: Path) -> tuple[str, str, bool]:
    """Return the version, the commit and whether files were changed, as the build wrote them into the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        built = tomllib.loads(archive.read(BUILT).decode())
    commit = str(built["commit"]).removeprefix("g")
    if not re.fullmatch(r"[0-9a-f]{40,64}", commit):
        raise ReleaseRefused(f"the wheel names no commit: {built['commit']}.")
    return built["version"], commit, built["dirty"] == "True"


def try_core(folder: Path, wheel: Path, code: dict[str, object]) -> None:
    """Install the core alone: it accounts and keeps a ledger, it is small, and torch is not there."""
    python = install(folder, str(wheel), [])  # the newest versions: what `pip install discreet` gives
    absent = f"import importlib.util as u, sys; sys.exit(any(map(u.find_spec, {ABSENT_FROM_CORE!r})))"
    run(str(python), "-c", absent, cwd=folder)
    try_command_line(folder, code)
    if (size := print_size(folder)) > CORE_MEGABYTES:
        raise ReleaseRefused(f"the core needs {size:.0f} MB, and {CORE_MEGABYTES} are allowed.")


def try_everything(folder: Path, wheel: Path, code: dict[str, object]) -> None:
    """Install all extras: the demo runs, a private run ends with its card, and its ledger verifies."""
    install(folder, f"{wheel}[all]", ["--constraint", str(ROOT / "constraints.txt")])
    try_command_line(folder, code)
    discreet(folder, "demo")
    discreet(folder, "run", "--set", "rounds=2", "--out", "first")
    outcome = json.loads((folder / "first" / "guarantee.json").read_text(encoding="utf-8"))
    card = outcome["guarantees"][0]
    if (card["version"], card["commit"], card["dirty"]) != tuple(code.values()):
        raise ReleaseRefused(f"the card of a run names {card['version']}, commit {card['commit']}.")
    discreet(folder, "ledger", "verify", "first/ledger.jsonl")
    discreet(folder, "report", "first")
    print_size(folder)


def try_command_line(folder: Path, code: dict[str, object]) -> None:
    """Compute an epsilon, print a card and keep a ledger, by the installed command."""
    if (printed := json.loads(discreet(folder, "--version", "--json"))) != code:
        raise ReleaseRefused(f"the installed command says that it is {printed}, and the wheel is {code}.")
    card = " ".join(discreet(folder, *ACCOUNT, "--card").split())
    if f"commit {str(code['commit'])[:9]}" not in card or "Certified ε = " not in card:
        raise ReleaseRefused("the card names no commit, or certifies nothing.")
    discreet(folder, "ledger", "create", "ledger.jsonl", "--epsilon", "4", "--delta", "1e-5")
    discreet(folder, "ledger", "verify", "ledger.jsonl")
    discreet(folder, "algorithms")


def install(folder: Path, requirement: str, options: Sequence[str]) -> Path:
    """Install a wheel into a new environment, with these options of pip; return its Python."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    run(str(python), "-m", "pip", "install", "--quiet", *options, requirement, cwd=folder)
    return python


def print_size(folder: Path) -> float:
    """Print and return how many megabytes an environment has."""
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink()) / 1e6
    say(f"  the environment {folder.name} has {size:,.0f} MB, with pip")
    return size


def discreet(folder: Path, *words: str) -> str:
    """Run the command that is installed in this environment, in its folder."""
    return run(str(folder / "bin" / "discreet"), *words, cwd=folder)


def run(*command: str, cwd: Path | None = None) -> str:
    """Run a command and return what it prints; ReleaseRefused with its last lines if it fails."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise ReleaseRefused(f"`{' '.join(command)}` ended with {done.returncode}:\n{last}")
    return done.stdout


def find_one(folder: Path, pattern: str) -> Path:
    """Return the only file of this pattern."""
    (path,) = folder.glob(pattern)
    return path


@contextlib.contextmanager
def print_duration(what: str) -> Iterator[None]:
    """Print what was done and how long it took."""
    began = time.monotonic()
    yield
    say(f"{what}: {time.monotonic() - began:.0f} s")


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
