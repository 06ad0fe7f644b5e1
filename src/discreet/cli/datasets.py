"""`discreet data get` and `discreet data list`: download public data sets, and list them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer
from rich.console import RenderableType
from rich.filesize import decimal
from rich.padding import Padding
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from discreet.cli.options import DataDir
from discreet.cli.output import Json, emit, stderr_console
from discreet.cli.text_table import text_table
from discreet.paths import Paths

if TYPE_CHECKING:
    from discreet.data.datasets.dataset_catalog import DataSet, Download
    from discreet.data.datasets.owner_checksums import FileContent

GET_EPILOG = """\b
Examples:
  discreet data get mnist
  discreet data get cifar10 --data-dir /data

A file that exists already is verified and not downloaded again. Some data sets
can't be downloaded, because nobody publishes them as one file: the error then
says which file to put where. Your own file needs its checksum in a file beside
it, and is read as it is: you vouch for its contents.
"""
LIST_EPILOG = """\b
Examples:
  discreet data list
  discreet data list --data-dir /data --json
"""

OnProgress: TypeAlias = Callable[["Download", int], None]


def get(
    name: Annotated[str, typer.Argument(metavar="NAME", hidden=True)],  # the docstring describes it
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Download the public data set NAME, and verify it.

    `discreet data list` lists the names. Each file is compared with its published checksum before it is stored under
    its name, so an incomplete file is never used.
    """
    from discreet.data.datasets import dataset_catalog, dataset_presence, download

    data, paths = dataset_catalog.find_data_set(name), Paths.default(data=data_dir)
    with _download_progress(data, quiet=as_json) as watch:
        downloaded = download.download_missing(paths, data, watch)
    files = dataset_presence.verify_files(paths, data, _try_reading)
    own = [file.path.name for file in files if file.owner_sha256]
    facts = {
        "name": data.name,
        "folder": str(paths.data / data.folder),
        "files": [{"path": str(file.path), "bytes": file.path.stat().st_size} for file in files],
        "downloaded": [path.name for path in downloaded],
        "verified": not own,
        "vouched": own,
        "licence": None if own else data.licence,
    }
    emit(lambda: facts, lambda: _describe_download(facts), as_json=as_json)


def _try_reading(read: "FileContent") -> None:
    """Read a file without a published checksum, to check that a task can use it."""
    from discreet.data.tasks.owner_files import check_readable  # takes a second to import, and is seldom needed

    check_readable(read)


def _describe_download(facts: dict[str, Any]) -> Iterator[RenderableType]:
    state = "was downloaded and verified" if facts["downloaded"] else "exists already, and is verified"
    if own := facts["vouched"]:
        which = f"{len(own)} of its {len(facts['files'])} files have" if len(facts["files"]) > 1 else "its file has"
        state = f"can be read, and you vouch for its contents: {which} no published checksum"
    yield f"{facts['name']} {state}. It is in {facts['folder']}"
    table = text_table("", "size", right=("size",))
    table.show_header = False
    for file in facts["files"]:
        table.add_row(str(Path(file["path"]).relative_to(facts["folder"])), decimal(file["bytes"]))
    yield Padding(table, (0, 2))
    yield f"Licence: {facts['licence'] or 'unknown'}"


@contextmanager
def _download_progress(data: "DataSet", *, quiet: bool) -> Iterator[OnProgress]:
    """Show a progress bar for each file on stderr; nothing outside a terminal, or if `quiet`."""
    console = stderr_console()
    if quiet or not console.is_terminal:
        yield lambda source, got: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=20), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        tasks = {source.name: bar.add_task(source.name, total=source.size, visible=False) for source in data.downloads}
        yield lambda source, got: bar.update(tasks[source.name], completed=got, visible=True)


def list_(data_dir: DataDir = None, as_json: Json = False) -> None:
    """List all public data sets, and whether they are on this machine.

    Only names and sizes of files are compared; `discreet data get` verifies the contents. For a file that you vouch
    for, the list leaves out all numbers.
    """
    from discreet.data.datasets import dataset_catalog, dataset_presence

    paths = Paths.default(data=data_dir)
    rows = [_row(data, dataset_presence.check_presence(paths, data)) for data in dataset_catalog.DATA_SETS.values()]
    emit(
        lambda: {"folder": str(paths.data), "data_sets": rows},
        lambda: [_table(rows), "", *_describe_notes(rows), f"Folder of the data sets: {paths.data}"],
        as_json=as_json,
    )


def _row(data: "DataSet", here: str) -> dict[str, Any]:
    """Return the facts about a data set; for one that its owner vouches for, only the facts that its format fixes."""
    counts = {
        "train": data.train,
        "test": data.test,
        "bytes": data.size,
        "natural_clients": data.natural_clients or None,
        "licence": data.licence,
    }
    return {
        "name": data.name,
        "folder": data.folder,
        "classes": data.classes,
        "here": here,
        "held_out": data.held_out or None,
        "can_be_downloaded": bool(data.downloads),
        **(dict.fromkeys(counts) if here == "vouched" else counts),
    }


def _describe_notes(rows: list[dict[str, Any]]) -> Iterator[str]:
    for share in sorted({row["held_out"] for row in rows if row["held_out"]}):
        names = " and ".join(row["name"] for row in rows if row["held_out"] == share)
        yield f"By default {share:.0%} of {names} is held out for testing."
    if own := [row["name"] for row in rows if row["here"] == "vouched"]:
        yield f"{', '.join(own)}: your own file, which you vouch for; its numbers are not known."


def _table(rows: list[dict[str, Any]]) -> Table:
    headings = ("data set", "examples", "classes", "size", "here", "clients", "licence")
    table = text_table(*headings, right=("examples", "classes", "size"), gap=2)
    for row in rows:
        own = row["here"] == "vouched"
        table.add_row(
            row["name"],
            "-" if own else f"{row['train'] + row['test']:,}",
            "-" if row["classes"] is None else str(row["classes"]),
            "-" if own else decimal(row["bytes"]),
            row["here"],
            row["natural_clients"] or "-",
            row["licence"] or "unknown",
        )
    return table
