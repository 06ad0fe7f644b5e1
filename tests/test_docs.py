"""The documentation is run: a page shows what its commands and programs print, and every link has a target."""

import contextlib
import io
import logging
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pytest

import discreet
from discreet import parts
from discreet.cli.main import run
from discreet.contract import CONTRACTS
from discreet.data.tasks.any_task import TaskSource
from discreet.privacy import events
from discreet.privacy.release import Relation, View

ROOT = Path(__file__).parent.parent
PAGES = [path for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")] if path.is_file()]
RUN = ("console", "python")
PROTOCOLS = [
    *(parts.Sampling, parts.LocalTrainer, parts.Sparsifier, parts.Mechanism, parts.Aggregation),
    *(parts.ServerOptimizer, parts.Schedule, TaskSource),
]


class Fence(NamedTuple):
    language: str
    body: str


def fences(page: str) -> list[Fence]:
    """Return the fenced blocks of a page, in order; a `text` fence after a `python` one is its output."""
    return [Fence(*found) for found in re.findall(r"^```([\w{}-]*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)]


RUNNABLE = [path for path in PAGES if any(fence.language in RUN for fence in fences(path.read_text()))]


@pytest.mark.parametrize("path", RUNNABLE, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_shows_what_its_commands_and_programs_print(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One page is one program, in its own folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for shown, printed in run_page(path.read_text()):
        assert matches(shown, printed), f"{path.name} shows\n{shown}\nand the program prints\n{printed}"


def run_page(page: str) -> Iterator[tuple[str, str]]:
    """Yield the output that a page shows and the actual output. A fence that begins with a file's name is that file."""
    names: dict[str, Any] = {"__name__": "page"}
    found = fences(page)
    for fence, following in zip(found, [*found[1:], Fence("", "")], strict=True):
        if file := re.match(r"# (\w+\.(py|toml))\n", fence.body):
            Path(file[1]).write_text(fence.body)
        elif fence.language == "console":
            yield from commands(fence.body)
        elif fence.language == "python":
            try:
                with capture_output() as out:
                    exec(compile(fence.body, "page", "exec"), names)
            finally:
                logging.disable(logging.NOTSET)  # a page may silence a library, and other tests read logs
            yield following.body if following.language == "text" else "", out.getvalue()


def commands(body: str) -> Iterator[tuple[str, str]]:
    """The lines after each `$ `, up to the next one, are what that command prints; `echo $?` is its exit code."""
    code = 0
    for line in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, _, shown = re.sub(r"\\\n\s*", "", line).partition("\n")
        with capture_output() as out:
            if command == "echo $?":
                out.write(f"{code}\n")
            else:
                program, *arguments = shlex.split(command)
                assert program == "discreet", f"a page runs discreet only, not {program}"
                code = run(arguments)
        yield shown, out.getvalue()


@contextlib.contextmanager
def capture_output() -> Iterator[io.StringIO]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        yield out


def matches(shown: str, printed: str) -> bool:
    pattern = re.escape(shown.strip()).replace(re.escape("..."), ".*?")
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


def test_a_page_that_shows_something_else_is_found() -> None:
    page = "```console\n$ discreet --version\ndiscreet 9.9.9\n$ echo $?\n0\n```\n"
    page += "```python\nprint(1)\n```\n```text\n2\n```\n"
    assert [matches(*each) for each in run_page(page)] == [False, True, False]
    assert matches("made ... today", "made by\nus today")
    assert not matches("1.5", "1x5")


def test_the_first_pages_are_run() -> None:
    assert {"README.md", "guarantees.md", "pitfalls.md"} <= {path.name for path in RUNNABLE}


LINK = re.compile(r"(?<!`)\]\((?P<target>[^)#\s]+)(?:#[^)\s]*)?\)")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_relative_link_leads_to_a_file(path: Path) -> None:
    """`make docs` checks the anchors too, and takes longer."""
    targets = [link.group("target") for link in LINK.finditer(path.read_text())]
    relative = [target for target in targets if not re.match(r"[a-z]+:", target)]
    assert not [target for target in relative if not (path.parent / target).exists()]


def test_the_api_page_shows_every_public_name() -> None:
    page = (ROOT / "docs" / "reference" / "api.md").read_text()
    shown = re.findall(r"^\.\. auto\w+:: discreet\.(\w+)$", page, re.MULTILINE)
    assert sorted(shown) == sorted(set(discreet.__all__) - {"__version__"})


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.__name__)
def test_the_page_of_contracts_says_what_a_part_must_write(protocol: type) -> None:
    contract = CONTRACTS[protocol]
    page = (ROOT / "docs" / "reference" / "contracts.md").read_text()
    said = re.search(rf"^An? {contract.name} must have ([^.;]*)[.;]", page, re.MULTILINE)
    assert said is not None
    assert set(re.findall(r"`(\w+)`", said[1])) == contract.required_members | contract.undeclared.keys()


@pytest.mark.parametrize("tool", ["toml_reference.py", "experiment_schema.py", "file_map.py", "public_names.py"])
def test_a_page_is_what_its_tool_writes(tool: str) -> None:
    ran = subprocess.run(
        [sys.executable, ROOT / "tools" / tool, "--check"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_every_path_in_the_guide_for_contributors_exists() -> None:
    """Of a path with a placeholder in capitals, such as NAME.py, the folder exists."""
    page = (ROOT / "CONTRIBUTING.md").read_text()
    paths = re.findall(r"`((?:[\w.<>]+/)+|(?:[\w.<>]+/)*[\w.<>]+\.(?:py|pyi|toml|md|json|txt))`", page)
    assert len(paths) > 50
    folders = [re.sub(r"[^/]*(?:[A-Z]{2,}\.py|_[A-Z]{2,}\.py|<\w+>.*)$", "", path) for path in paths]
    places = [ROOT, ROOT / "src" / "discreet"]
    assert not [path for path in folders if not any((place / path).exists() for place in places)]


def test_the_architecture_names_every_room() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text()
    rooms = [path.stem for path in (ROOT / "src" / "discreet").iterdir() if not path.name.startswith(("_", "py."))]
    assert not [room for room in rooms if not re.search(rf"^(.* · )?{room}( |$)", page, re.MULTILINE)]


def test_the_glossary_knows_every_word_that_a_record_may_hold() -> None:
    glossary = (ROOT / "docs" / "glossary.md").read_text()
    kinds = [kind.__dataclass_fields__["kind"].default for kind in get_args(get_args(events.Event)[0])]
    words = [*kinds, *get_args(Relation), *get_args(View), "example", "person", "filter", "plan"]
    assert not [word for word in words if f"`{word}`" not in glossary]


def test_the_changelog_lists_dated_versions_and_the_next_one_is_above_the_newest() -> None:
    headings = re.findall(r"^## \[(.+)\](?: - (\d{4}-\d\d-\d\d))?$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    (first, no_date), *versions = headings
    assert (first, no_date) == ("Unreleased", "")
    numbers = [tuple(map(int, version.split("."))) for version, _ in versions]
    assert [date for _, date in versions] == sorted((date for _, date in versions), reverse=True)
    assert all(date for _, date in versions)
    assert numbers == sorted(numbers, reverse=True)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools_scm"]
    major, minor, _ = numbers[0]
    assert settings["fallback_version"] in (f"{major}.{minor + 1}.0.dev0", f"{major + 1}.0.0.dev0")
