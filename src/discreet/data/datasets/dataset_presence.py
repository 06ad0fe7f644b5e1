"""Whether a data set is here: at a glance by names and sizes, or byte by byte."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from discreet.data.datasets.dataset_catalog import DataSet, File
from discreet.data.datasets.dataset_files import archive_in, at, check_archive, content, missing
from discreet.data.datasets.owner_checksums import Content, vouched
from discreet.errors import InvalidInput
from discreet.paths import Places

Presence: TypeAlias = Literal["yes", "vouched", "partly", "no"]


class Held(NamedTuple):
    """Where a file or an archive lies; `vouched` is its sha256 where only the data's owner vouches for it."""

    path: Path
    vouched: str | None = None


def glance(places: Places, data: DataSet) -> Presence:
    """By names and sizes only, which takes no time; a file cut short shows, one that was altered may not.

    "vouched" is a data set of which the owner vouches for a file.
    """
    folder = places.data / data.folder
    archive = archive_in(folder, data)
    if archive and (folder / archive.name).stat().st_size == archive.size:
        return "yes"
    here = [_glanced(folder, data, file) for name, file in data.files.items() if name not in data.optional]
    if not all(here):
        return "partly" if any(here) else "no"
    return "vouched" if "vouched" in here else "yes"


def verified(places: Places, data: DataSet, look: Callable[[Content], None] = lambda read: None) -> list[Held]:
    """What holds the data set, each file read and held against its checksum; refuses what isn't whole.

    `look` gets what the owner vouches for, and refuses what it can't read.
    """
    folder = places.data / data.folder
    found = []
    for file in data.files.values():
        path = at(folder, data, file)
        if path:
            read = content(places, data.name, file.name)  # one at a time: all of EMNIST would fill the memory
            if read.vouched:
                look(read)
            found.append(Held(path, read.vouched))
        elif archive_in(folder, data) is None and file.name not in data.optional:
            raise missing(folder, data, file)
    if len(found) < len(data.files) and (archive := archive_in(folder, data)):
        check_archive(folder / archive.name, archive, data)
        found.append(Held(folder / archive.name))
    return found


def _glanced(folder: Path, data: DataSet, file: File) -> Literal["yes", "vouched", ""]:
    """Whether the file's end is there, or a checksum that vouches for it; "" for neither."""
    path = at(folder, data, file)
    if path is None or not path.stat().st_size:
        return ""
    try:
        own = vouched(folder, data, file)
    except InvalidInput:  # `discreet data get` says what is wrong with it
        return ""
    if own and own != file.sha256:
        return "vouched"
    return "yes" if _ends(path, file) else ""


def _ends(path: Path, file: File) -> bool:
    """Whether the file's end is there: gzip says there how long it was, xz at least that it ends."""
    if path.suffix not in (".gz", ".xz"):
        return path.stat().st_size == file.size
    with open(path, "rb") as raw:
        raw.seek(max(0, path.stat().st_size - 4))
        last = raw.read()
    return last == (file.size % 2**32).to_bytes(4, "little") if path.suffix == ".gz" else last[2:] == b"YZ"
