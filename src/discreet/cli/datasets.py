"""`discreet data get` and `discreet data list`: public data sets, brought here and named."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer
from rich.console import RenderableType
from rich.filesize import decimal
from rich.padding import Padding
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table as Grid

from discreet.cli.options import DataDir
from discreet.cli.output import Json, emit, stderr_console
from discreet.paths import Paths

if TYPE_CHECKING:
    from discreet.data.datasets.dataset_catalog import DataSet, Download
    from discreet.data.datasets.owner_checksums import FileContent

GET_EPILOG = """\b
Examples:
  discreet data get mnist
  discreet data get cifar10 --data-dir /data

What is there already is verified and not downloaded again. A set that nobody
publishes as one file can't be downloaded: the error says what to put where. A
file of your own needs its checksum beside it, and is then read as you vouch.
"""
LIST_EPILOG = """\b
Examples:
  discreet data list
  discreet data list --data-dir /data --json
"""

OnProgress: TypeAlias = Callable[["Download", int], None]


def get(
    name: Annotated[str, typer.Argument(metavar="NAME", hidden=True)],  # the text above the options tells of it
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Download the public data set NAME, and verify it.

    The names are in `discreet data list`. Each file is held against its published checksum before it takes its name,
    so none is ever half there.
    """
    from discreet.data.datasets import dataset_catalog, dataset_presence, download

    data, paths = dataset_catalog.find_data_set(name), Paths.default(data=data_dir)
    with _download_progress(data, quiet=as_json) as watch:
        came = download.download_missing(paths, data, watch)
    held = dataset_presence.verify_files(paths, data, _try_reading)
    own = [each.path.name for each in held if each.owner_sha256]
    found = {
        "name": data.name,
        "folder": str(paths.data / data.folder),
        "files": [{"path": str(each.path), "bytes": each.path.stat().st_size} for each in held],
        "downloaded": [path.name for path in came],
        "verified": not own,
        "vouched": own,
        "licence": None if own else data.licence,
    }
    emit(lambda: found, lambda: _describe_download(found), as_json=as_json)


def _try_reading(read: "FileContent") -> None:
    """Read a file that only its owner vouches for, to see that a task can."""
    from discreet.data.tasks.owner_files import check_readable  # a second to import, and few have such a file

    check_readable(read)


def _describe_download(found: dict[str, Any]) -> Iterator[RenderableType]:
    said = "was downloaded and verified" if found["downloaded"] else "was here already, and is verified"
    if own := found["vouched"]:
        which = f"{len(own)} of its {len(found['files'])} files are" if len(found["files"]) > 1 else "it is"
        said = f"is here as you vouch: {which} of your own, not known to the public, and can be read"
    yield f"{found['name']} {said}. It lies in {found['folder']}"
    grid = Grid(box=None, padding=(0, 3, 0, 0), pad_edge=False, show_header=False)
    grid.add_column()
    grid.add_column(justify="right")
    for file in found["files"]:
        grid.add_row(str(Path(file["path"]).relative_to(found["folder"])), decimal(file["bytes"]))
    yield Padding(grid, (0, 2))
    yield f"Licence: {found['licence'] or 'you know'}"


@contextmanager
def _download_progress(data: "DataSet", *, quiet: bool) -> Iterator[OnProgress]:
    """A bar on stderr for a person who waits; nothing in a pipe, in a log or for a program."""
    console = stderr_console()
    if quiet or not console.is_terminal:
        yield lambda source, got: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=20), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        tasks = {source.name: bar.add_task(source.name, total=source.size, visible=False) for source in data.downloads}
        yield lambda source, got: bar.update(tasks[source.name], completed=got, visible=True)


def list_(data_dir: DataDir = None, as_json: Json = False) -> None:
    """All public data sets: what they hold, and whether they are here.

    Whether one is here is told by names and sizes alone; `discreet data get` reads it whole. Of files that you vouch
    for, nothing else is known.
    """
    from discreet.data.datasets import dataset_catalog, dataset_presence

    paths = Paths.default(data=data_dir)
    rows = [_row(data, dataset_presence.check_presence(paths, data)) for data in dataset_catalog.DATA_SETS.values()]
    emit(
        lambda: {"folder": str(paths.data), "data_sets": rows},
        lambda: [_table(rows), "", *_describe_notes(rows), f"They lie, or would lie, in {paths.data}"],
        as_json=as_json,
    )


def _row(data: "DataSet", here: str) -> dict[str, Any]:
    """What is known of the data set; of one that its owner vouches for, only what its form says."""
    counted = {
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
        **(dict.fromkeys(counted) if here == "vouched" else counted),
    }


def _describe_notes(rows: list[dict[str, Any]]) -> Iterator[str]:
    for share in sorted({row["held_out"] for row in rows if row["held_out"]}):
        names = " and ".join(row["name"] for row in rows if row["held_out"] == share)
        yield f"Of {names}, {share:.0%} is held out to test on by default."
    if own := [row["name"] for row in rows if row["here"] == "vouched"]:
        yield f"{', '.join(own)}: here as you vouch, of which nothing else is known."


def _table(rows: list[dict[str, Any]]) -> Grid:
    grid = Grid(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    grid.add_column("data set")
    for heading in ("examples", "classes", "size"):
        grid.add_column(heading, justify="right")
    for heading in ("here", "clients", "licence"):
        grid.add_column(heading)
    for row in rows:
        own = row["here"] == "vouched"
        grid.add_row(
            row["name"],
            "-" if own else f"{row['train'] + row['test']:,}",
            "-" if row["classes"] is None else str(row["classes"]),
            "-" if own else decimal(row["bytes"]),
            row["here"],
            row["natural_clients"] or "-",
            row["licence"] or "you know",
        )
    return grid
