"""Check whether a data set is on this machine: quickly by names and sizes, or by reading every byte."""

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
    """A verified file or archive.

    Attributes:
        owner_sha256: Its checksum if only the data's owner vouches for it. None for a known or published file.
    """

    path: Path
    owner_sha256: str | None = None


def check_presence(paths: Paths, data: DataSet) -> Presence:
    """Check by names and sizes only, which is quick. A truncated file is noticed; an altered file may not be.

    Returns:
        "yes", "partly" or "no"; or "vouched" if it is complete and the data's owner vouches for some of its files.
    """
    folder = paths.data / data.folder
    archive = find_archive(folder, data)
    if archive and (folder / archive.name).stat().st_size == archive.size:
        return "yes"
    files = [_check_file_presence(folder, data, file) for name, file in data.files.items() if name not in data.optional]
    if not all(files):
        return "partly" if any(files) else "no"
    return "vouched" if "vouched" in files else "yes"


def verify_files(
    paths: Paths, data: DataSet, check_owner_file: Callable[[FileContent], None] = lambda content: None
) -> list[LocalFile]:
    """Read every file of the data set and compare it with its checksum.

    Args:
        check_owner_file: Is called with each file that only the data's owner vouches for, to check its format.

    Raises:
        InvalidInput: A file is missing, damaged, or another file than expected.
    """
    folder = paths.data / data.folder
    verified = []
    for file in data.files.values():
        path = find_data_file(folder, data, file)
        if path:
            content = read_data_file(paths, data.name, file.name)  # one at a time: all of EMNIST would fill the memory
            if content.owner_sha256:
                check_owner_file(content)
            verified.append(LocalFile(path, content.owner_sha256))
        elif find_archive(folder, data) is None and file.name not in data.optional:
            raise missing_file_error(folder, data, file)
    if len(verified) < len(data.files) and (archive := find_archive(folder, data)):
        check_archive(folder / archive.name, archive, data)
        verified.append(LocalFile(folder / archive.name))
    return verified


def _check_file_presence(folder: Path, data: DataSet, file: DataFile) -> Literal["yes", "vouched", ""]:
    """Return "yes" for a file of the right size, "vouched" for one with an owner's checksum, and "" for neither."""
    path = find_data_file(folder, data, file)
    if path is None or not path.stat().st_size:
        return ""
    try:
        own = owner_checksum(folder, data, file)
    except InvalidInput:  # `discreet data get` reports what is wrong with it
        return ""
    if own and own != file.sha256:
        return "vouched"
    return "yes" if _has_expected_end(path, file) else ""


def _has_expected_end(path: Path, file: DataFile) -> bool:
    """Return whether the file is complete, by its last bytes: gzip stores the size there, xz an end mark."""
    if path.suffix not in (".gz", ".xz"):
        return path.stat().st_size == file.size
    with open(path, "rb") as raw:
        raw.seek(max(0, path.stat().st_size - 4))
        last = raw.read()
    return last == (file.size % 2**32).to_bytes(4, "little") if path.suffix == ".gz" else last[2:] == b"YZ"
