"""Whether a data set is here: at a glance by names and sizes, or byte by byte."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from discreet.data.datasets.dataset_catalog import DataFile, DataSet
from discreet.data.datasets.dataset_files import (
    check_archive,
    find_archive,
    find_data_file,
    missing_file_error,
    read_data_file,
)
from discreet.data.datasets.owner_checksums import FileContent, owner_checksum
from discreet.errors import InvalidInput
from discreet.paths import Paths

Presence: TypeAlias = Literal["yes", "vouched", "partly", "no"]


class LocalFile(NamedTuple):
    """Where a file or an archive lies; `vouched` is its sha256 where only the data's owner vouches for it."""

    path: Path
    owner_sha256: str | None = None


def check_presence(paths: Paths, data: DataSet) -> Presence:
    """By names and sizes only, which takes no time; a file cut short shows, one that was altered may not.

    "vouched" is a data set of which the owner vouches for a file.
    """
    folder = paths.data / data.folder
    archive = find_archive(folder, data)
    if archive and (folder / archive.name).stat().st_size == archive.size:
        return "yes"
    here = [_check_file_presence(folder, data, file) for name, file in data.files.items() if name not in data.optional]
    if not all(here):
        return "partly" if any(here) else "no"
    return "vouched" if "vouched" in here else "yes"


def verify_files(
    paths: Paths, data: DataSet, look: Callable[[FileContent], None] = lambda read: None
) -> list[LocalFile]:
    """What holds the data set, each file read and held against its checksum; refuses what isn't whole.

    `look` gets what the owner vouches for, and refuses what it can't read.
    """
    folder = paths.data / data.folder
    found = []
    for file in data.files.values():
        path = find_data_file(folder, data, file)
        if path:
            read = read_data_file(paths, data.name, file.name)  # one at a time: all of EMNIST would fill the memory
            if read.owner_sha256:
                look(read)
            found.append(LocalFile(path, read.owner_sha256))
        elif find_archive(folder, data) is None and file.name not in data.optional:
            raise missing_file_error(folder, data, file)
    if len(found) < len(data.files) and (archive := find_archive(folder, data)):
        check_archive(folder / archive.name, archive, data)
        found.append(LocalFile(folder / archive.name))
    return found


def _check_file_presence(folder: Path, data: DataSet, file: DataFile) -> Literal["yes", "vouched", ""]:
    """Whether the file's end is there, or a checksum that vouches for it; "" for neither."""
    path = find_data_file(folder, data, file)
    if path is None or not path.stat().st_size:
        return ""
    try:
        own = owner_checksum(folder, data, file)
    except InvalidInput:  # `discreet data get` says what is wrong with it
        return ""
    if own and own != file.sha256:
        return "vouched"
    return "yes" if _has_expected_end(path, file) else ""


def _has_expected_end(path: Path, file: DataFile) -> bool:
    """Whether the file's end is there: gzip says there how long it was, xz at least that it ends."""
    if path.suffix not in (".gz", ".xz"):
        return path.stat().st_size == file.size
    with open(path, "rb") as raw:
        raw.seek(max(0, path.stat().st_size - 4))
        last = raw.read()
    return last == (file.size % 2**32).to_bytes(4, "little") if path.suffix == ".gz" else last[2:] == b"YZ"
