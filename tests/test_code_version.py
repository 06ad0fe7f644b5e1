"""Which code this is: in a checkout, in an installed package, in an archive, and with no trace of any."""

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import discreet
from discreet import code_version
from discreet.code_version import CodeVersion, find_code_version, read_code_version

ROOT = Path(__file__).parents[1]
COMMIT = "c825f7794ca10c7fad0ae5faa0742a53d7d8250f"
BASE = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools_scm"]["fallback_version"]
NEXT = BASE.removesuffix(".dev0")
CARD = "from discreet.cli.main import main; main()"
ACCOUNT = ["account", "gaussian", "--noise-multiplier", "4", "--steps", "10"]


def git(folder: Path, *words: str) -> str:
    """Run git without the settings of this machine."""
    settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    person = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    ours = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-C", str(folder), *words]
    return subprocess.run(
        command, env=ours | settings | person, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A tree that looks like our repository, outside of any."""
    folder = tmp_path / "tree" / "src" / "discreet"
    folder.mkdir(parents=True)
    shutil.copy(ROOT / "pyproject.toml", tmp_path / "tree")
    for name in ("code_version.py", code_version.ARCHIVE):
        shutil.copy(ROOT / "src" / "discreet" / name, folder)
    return folder


@pytest.fixture
def checkout(package: Path) -> Path:
    """The tree as a git repository of one commit, without tags."""
    top = package.parents[1]
    git(top, "init", "-q")
    git(top, "add", ".")
    git(top, "commit", "-q", "-m", "first")
    return top


def test_a_checkout_without_tags_is_the_next_version_with_the_commit(checkout: Path, package: Path):
    commit = git(checkout, "rev-parse", "HEAD")
    found = find_code_version(package)
    assert found == CodeVersion(f"{NEXT}.dev1+g{commit[:9]}", commit, False)
    assert str(found) == f"discreet {NEXT}.dev1, commit {commit[:9]}"


def test_a_tagged_commit_is_that_version_and_the_next_one_is_on_the_way_to_the_next_version(
    checkout: Path, package: Path
):
    git(checkout, "tag", "-a", "v0.2.0", "-m", "version")
    assert find_code_version(package).version == "0.2.0"
    git(checkout, "commit", "-q", "--allow-empty", "-m", "second")
    found = find_code_version(package)
    assert found.version == f"{NEXT}.dev1+g{str(found.commit)[:9]}"


@pytest.mark.parametrize("change", ["tracked file", "new file in the package"])
def test_a_changed_tree_is_flagged(checkout: Path, package: Path, change: str):
    changed = checkout / "pyproject.toml" if change == "tracked file" else package / "new.py"
    changed.write_text(changed.read_text() + "\n" if changed.exists() else "")
    found = find_code_version(package)
    assert found.dirty is True
    assert str(found).endswith(", with uncommitted changes")
    assert found.version.startswith(f"{NEXT}.dev1+g{git(checkout, 'rev-parse', 'HEAD')[:9]}.d20")


def test_a_new_file_beside_the_package_is_no_change_of_the_code(checkout: Path, package: Path):
    (checkout / "experiment.toml").write_text("")
    assert find_code_version(package).dirty is False


def test_a_repository_around_an_installed_package_is_not_asked(checkout: Path, package: Path):
    """A virtual environment inside a user's repository must not lend us that repository's commit."""
    installed = checkout / ".venv" / "lib" / "discreet"
    shutil.copytree(package, installed)
    assert find_code_version(installed).commit is None


def test_variables_of_a_git_hook_lead_to_no_other_repository(
    checkout: Path, package: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("GIT_DIR", str(checkout / "nowhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(checkout / "nothing"))
    assert find_code_version(package).dirty is False


def test_without_git_on_the_machine_a_checkout_has_its_version_and_an_unknown_commit(
    checkout: Path, package: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", str(checkout))
    assert find_code_version(package) == CodeVersion(BASE)
    assert str(find_code_version(package)) == f"discreet {BASE}, commit unknown"


def test_a_tree_without_git_is_the_next_version_and_its_commit_is_unknown(package: Path):
    assert find_code_version(package) == CodeVersion(BASE)


def test_an_archive_knows_its_commit_and_not_what_changed_since(checkout: Path, package: Path, tmp_path: Path):
    git(checkout, "archive", "-o", str(tmp_path / "a.tar"), "HEAD")  # without .gitattributes nothing is substituted
    shutil.copy(ROOT / ".gitattributes", checkout)
    git(checkout, "add", ".gitattributes")
    git(checkout, "commit", "-q", "-m", "second")
    git(checkout, "archive", "-o", str(tmp_path / "b.tar"), "HEAD")
    unpacked = {}
    for name in "ab":
        shutil.unpack_archive(tmp_path / f"{name}.tar", tmp_path / name, filter="data")
        unpacked[name] = find_code_version(tmp_path / name / "src" / "discreet")
    assert unpacked["a"] == CodeVersion(BASE)
    assert unpacked["b"] == CodeVersion(BASE, git(checkout, "rev-parse", "HEAD"), None)
    assert str(unpacked["b"]).endswith("changes since then unknown")


@pytest.mark.parametrize(
    ("commit", "dirty", "expected"),
    [
        (f"g{COMMIT}", "False", CodeVersion("0.3.0", COMMIT, False)),
        (f"g{COMMIT}", "True", CodeVersion("0.3.0", COMMIT, True)),
        ("None", "False", CodeVersion("0.3.0")),
    ],
)
def test_an_installed_package_is_what_was_built(tmp_path: Path, commit: str, dirty: str, expected: CodeVersion):
    package = tmp_path / "site" / "lib" / "discreet"
    package.mkdir(parents=True)
    (package / code_version.BUILT).write_text(f"version = '0.3.0'\ncommit = '{commit}'\ndirty = '{dirty}'\n")
    assert find_code_version(package) == expected


def test_a_card_of_an_installed_package_names_its_version_and_commit(tmp_path: Path):
    """The package is copied as an installer would; `make release` does the same with a real wheel."""
    shutil.copytree(ROOT / "src" / "discreet", tmp_path / "discreet", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "discreet" / code_version.BUILT).write_text(
        f"version = '0.3.0.dev12+gc825f7794.d20261116'\ncommit = 'g{COMMIT}'\ndirty = 'True'\n"
    )

    def run(*words: str) -> str:
        command = [sys.executable, "-c", CARD, *words]
        done = subprocess.run(
            command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, check=True
        )
        return done.stdout.decode()

    text = " ".join(run(*ACCOUNT, "--card").split())
    assert (
        "Made by discreet 0.3.0.dev12, commit c825f7794, with uncommitted changes: no commit holds the code that made "
        "this card" in text
    )
    assert json.loads(run("--version", "--json")) == {
        "discreet": "0.3.0.dev12+gc825f7794.d20261116",
        "commit": COMMIT,
        "dirty": True,
    }


def test_a_copy_without_any_trace_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def raise_not_found(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", raise_not_found)
    assert find_code_version(tmp_path / "lib" / "discreet") == CodeVersion(code_version.UNKNOWN)


@pytest.mark.parametrize(
    ("code", "stamp"),
    [
        (CodeVersion("0.3.0", COMMIT, False), f"0.3.0+g{COMMIT}"),
        (CodeVersion("0.3.0.dev12", COMMIT, True), f"0.3.0.dev12+g{COMMIT}.dirty"),
        (CodeVersion("0.3.0.dev0", COMMIT, None), f"0.3.0.dev0+g{COMMIT}.unchecked"),
        (CodeVersion("0.3.0.dev0"), "0.3.0.dev0"),
    ],
)
def test_a_stamp_keeps_version_commit_and_state(code: CodeVersion, stamp: str):
    assert code.stamp == stamp
    assert CodeVersion.from_stamp(stamp) == code


def test_commits_on_the_way_to_a_version_share_its_number():
    versions = ("0.3.0", "0.3.0.dev12+gc825f7794", "0.3.0.dev13+g7291958ab.d20261116")
    assert {CodeVersion(version).release for version in versions} == {"0.3.0"}
    assert CodeVersion("0.3.0rc1").release == "0.3.0rc1"


def test_importing_discreet_starts_no_process():
    program = (
        "import subprocess, os\n"
        "def refuse(*a, **k): raise AssertionError('a process was started')\n"
        "subprocess.Popen.__init__ = refuse; os.system = refuse\n"
        "import discreet, discreet.cli.main, discreet.privacy.guarantee, discreet.privacy.ledger\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, "PYTHONPATH": str(ROOT / "src")})


def test_the_public_version_is_that_of_the_code():
    assert discreet.__version__ == read_code_version().version
