"""`discreet trust`: show the Python code that an experiment would run, and remember that it may."""

import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.output import Json, emit
from discreet.errors import InvalidInput
from discreet.trust_store import TrustedCode, forget, read_trusted, remember, store_path

if TYPE_CHECKING:
    from discreet.trust import OwnCode

EPILOG = """\b
Examples:
  discreet trust experiment.toml
  discreet trust net.py
  discreet trust --list
  discreet trust --forget net.py

\b
What is trusted is the content of the files, wherever they are: a file that
has changed is asked for again. The list is kept in your state folder and is
never read from an experiment. --trust of another command trusts for that
command only, and remembers nothing.
"""


def trust(
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", hidden=True)] = None,
    list_all: Annotated[bool, typer.Option("--list", help="Show the code that is trusted.")] = False,
    forgotten: Annotated[
        str | None, typer.Option("--forget", metavar="FILE|SHA256", help="No longer trust this code.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Trust the Python code that FILE names, from now on.

    FILE is an experiment, a Python file, a run directory or a deployment. The command shows which files would run, how
    long they are, who owns them and their sha256. It runs none of them: read them first.
    """
    if sum((file is not None, list_all, forgotten is not None)) != 1:
        raise InvalidInput("discreet trust needs a FILE, --list or --forget, and one of them only.")
    if file is not None:
        codes = read_code(file)
        if codes:
            remember(codes)
        data = {"trusted": [_code_data(code) for code in codes], "store": str(store_path())}
        return emit(lambda: data, lambda: _describe_trusted(file, codes), as_json=as_json)
    if forgotten is not None:
        gone = forget(forgotten)
        return emit(
            lambda: {"forgotten": [asdict(entry) for entry in gone]},
            lambda: (f"No longer trusted: {_describe_entry(entry)}\n" for entry in gone),
            as_json=as_json,
        )
    entries = read_trusted()
    nothing = f"Nothing is trusted: {store_path()} has no entry.\n"
    return emit(
        lambda: {"trusted": [asdict(entry) for entry in entries], "store": str(store_path())},
        lambda: (f"{_describe_entry(entry)}\n" for entry in entries) if entries else [nothing],
        as_json=as_json,
    )


def read_code(file: Path) -> "list[OwnCode]":
    """Read the code that an experiment, a Python file, a run directory or a deployment names, without running it."""
    from discreet.experiment.configuration import toml_document
    from discreet.experiment.configuration.own_code import find_own_code
    from discreet.user_code import find_file_code

    if file.suffix == ".py":
        return [find_file_code(file)]
    folder = Path(os.path.realpath(file)).parent  # Path.resolve raises at a loop of links
    if (file / "run.json").is_file():
        from discreet.experiment.run_directory.run_record import RunRecord  # loads torch

        stored = RunRecord.open(file).identity.folder
        if stored is None:
            raise InvalidInput(f"{file} was made from Python, and names no code that could be trusted.")
        folder, file = Path(stored), file / "resolved.toml"
    elif (file / "app" / "resolved.toml").is_file():
        folder, file = (file / "app").resolve(), file / "app" / "resolved.toml"
    return find_own_code(toml_document.parse_toml(toml_document.read_toml_text(file), str(file)), folder)


def _code_data(code: "OwnCode") -> dict[str, Any]:
    files = [
        {"path": str(file.path), "lines": file.lines, "owner": file.owner, "sha256": file.sha256} for file in code.files
    ]
    return {"reference": code.reference, "sha256": code.sha256, "files": files}


def _describe_trusted(named: Path, codes: "list[OwnCode]") -> Iterator[str]:
    if not codes:
        yield f"{named} names no Python code, so there is nothing to trust."
        return
    for code in codes:
        yield f"{code.reference}\n" + "\n".join(
            f"  {file.path}\n    {file.lines:,} lines, owned by {file.owner}\n    sha256 {file.sha256}"
            for file in code.files
        )
    yield ""
    yield f"Trusted from now on, until a file changes. The list is in\n{store_path()}"


def _describe_entry(entry: TrustedCode) -> str:
    return f"{entry.date}  {entry.sha256}  {entry.path}"
