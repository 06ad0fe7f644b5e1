"""Whether a data set is here: at a glance by names and sizes, or byte by byte."""

from pathlib import Path
from typing import Literal, TypeAlias

from discreet.datasets.catalog import DataSet, File
from discreet.datasets.files import archive_in, at, check_archive, content, missing, vouched
from discreet.places import Places

Presence: TypeAlias = Literal["yes", "partly", "no"]


def glance(places: Places, data: DataSet) -> Presence:
    """By names and sizes only, which takes no time; a file cut short shows, one that was altered may not."""
    folder = places.data / data.folder
    archive = archive_in(folder, data)
    if archive and (folder / archive.name).stat().st_size == archive.size:
        return "yes"
    here = [_whole(folder, data, file) for name, file in data.files.items() if name not in data.optional]
    return "yes" if all(here) else "partly" if any(here) else "no"


def verified(places: Places, data: DataSet) -> list[Path]:
    """The paths that hold the data set, each read and held against its checksum; refuses what isn't whole."""
    folder = places.data / data.folder
    found = []
    for file in data.files.values():
        path = at(folder, data, file)
        if path:
            content(places, data.name, file.name)  # one at a time: all of EMNIST would fill the memory
            found.append(path)
        elif archive_in(folder, data) is None and file.name not in data.optional:
            raise missing(folder, data, file)
    if len(found) < len(data.files) and (archive := archive_in(folder, data)):
        check_archive(folder / archive.name, archive, data)
        found.append(folder / archive.name)
    return found


def _whole(folder: Path, data: DataSet, file: File) -> bool:
    """Whether the file's end is there: gzip says there how long it was, xz at least that it ends."""
    path = at(folder, data, file)
    if path is None:
        return False
    if vouched(folder, data, file):
        return True
    if path.suffix not in (".gz", ".xz"):
        return path.stat().st_size == file.size
    with open(path, "rb") as raw:
        raw.seek(max(0, path.stat().st_size - 4))
        last = raw.read()
    return last == (file.size % 2**32).to_bytes(4, "little") if path.suffix == ".gz" else last[2:] == b"YZ"
