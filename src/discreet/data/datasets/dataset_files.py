"""Read the files of a data set, compressed or in an archive, and compare them with their checksums."""

import gzip
import hashlib
import lzma
import os
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from discreet.data.datasets.dataset_catalog import DataFile, DataSet, Download, find_data_set
from discreet.data.datasets.owner_checksums import FileContent, owner_checksum, owner_checksum_hint
from discreet.errors import InvalidInput
from discreet.paths import Paths

ENDINGS = ("", ".gz", ".xz")
DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile)
DATA_DIR_HINT = "--data-dir or DISCREET_DATA names another folder."


def read_data_file(paths: Paths, dataset: str, file: str) -> FileContent:
    """Read one file of a data set, decompressed.

    Guarantee: the bytes have the checksum of the catalog, or come from an archive that has its published checksum. If
    neither is published, they have the size in the catalog. A file that the data's owner vouches for has the owner's
    checksum and is not empty.

    Raises:
        InvalidInput: The file is missing, damaged, or another file than expected.
    """
    return read_data_files(paths, dataset, [file])[0]


def read_data_files(paths: Paths, dataset: str, wanted: Sequence[str]) -> list[FileContent]:
    """Read several files of one data set. Single files are decompressed in parallel, and an archive is opened once."""
    data = find_data_set(dataset)
    folder = paths.data / data.folder
    single = {name: path for name in wanted if (path := find_data_file(folder, data, data.files[name]))}
    contents: dict[str, FileContent] = {}
    if packed := [data.files[name] for name in wanted if name not in single]:
        archive = find_archive(folder, data)
        if archive is None:
            raise missing_file_error(folder, data, packed[0])
        contents |= _read_archive(folder / archive.name, archive, data, packed)
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:  # decompression releases Python's lock
        read_files = pool.map(lambda name: _read_single_file(single[name], data, data.files[name]), single)
        contents |= zip(single, read_files, strict=True)
    return [contents[name] for name in wanted]


def find_data_file(folder: Path, data: DataSet, file: DataFile) -> Path | None:
    """Return the path of a single file: in the data set's folder, or in the folder that its archive unpacks to."""
    inside = [folder / archive.inside for archive in data.downloads if archive.inside]
    candidates = (parent / f"{file.name}{ending}" for parent in (folder, *inside) for ending in ENDINGS)
    return next((path for path in candidates if path.is_file()), None)


def missing_file_error(folder: Path, data: DataSet, file: DataFile) -> InvalidInput:
    """Return the error that says how to get a missing file."""
    fix = f"Get it with: discreet data get {data.name}; {DATA_DIR_HINT}"
    if data.by_hand:
        fix = f"Put there {data.by_hand}; {DATA_DIR_HINT} {owner_checksum_hint(file.name)}"
    return InvalidInput(f"{data.name} is missing: {folder} has no {file.name}, plain, .gz or .xz.", fix=fix)


def find_archive(folder: Path, data: DataSet) -> Download | None:
    """Return the data set's archive if it is in the folder under its published name."""
    archives = (download for download in data.downloads if download.inside)
    return next((archive for archive in archives if (folder / archive.name).is_file()), None)


def check_archive(path: Path, archive: Download, data: DataSet) -> None:
    """Refuse an archive that differs from the published one."""
    algorithm, published = archive.checksum.split(":")
    with _report_damage(path, data), open(path, "rb") as file:
        digest = hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False))
    if (got := digest.hexdigest()) != published:
        raise _wrong_file_error(path, data, f"its {algorithm} is {got}, and should be {published}")


def _read_single_file(path: Path, data: DataSet, file: DataFile) -> FileContent:
    with _report_damage(path, data), open(path, "rb") as raw:
        content = _decompress(raw, path.name, -1 if data.by_hand else file.size + 1)
    if data.by_hand:
        return FileContent(file.name, content, _check_owner_file(content, path, data, file))
    _check_content(content, path, data, file)
    return FileContent(file.name, content)


def _check_owner_file(content: bytes, path: Path, data: DataSet, file: DataFile) -> str | None:
    """Return None for the known file, or the checksum of a file that its owner vouches for. Refuse any other."""
    if not content:
        raise _wrong_file_error(path, data, "it is empty")
    got, own = hashlib.sha256(content).hexdigest(), owner_checksum(path.parent, data, file)
    if own and got != own:
        raise InvalidInput(
            f"{path} is not the file that its owner vouches for: the sha256 of its uncompressed content is {got}, "
            f"and should be {own}.",
            fix="Put that file there, or write its checksum anew.",
        )
    if got == file.sha256:
        return None
    if own:
        return own
    differs = f"the sha256 of its uncompressed content is {got}, and should be {file.sha256}"
    if len(content) < file.size:
        differs = f"it is cut short at {len(content):,} of {file.size:,} bytes, or another file ({differs})"
    raise InvalidInput(
        f"{path} is not the known file: {differs}.",
        fix=f"Put the whole file there. {owner_checksum_hint(file.name)}",
    )


def _read_archive(path: Path, archive: Download, data: DataSet, wanted: Sequence[DataFile]) -> dict[str, FileContent]:
    if any(file.sha256 is None for file in wanted):
        check_archive(path, archive, data)
    with _report_damage(path, data):
        contents = dict(_read_zip(path, archive, wanted) if path.suffix == ".zip" else _read_tar(path, wanted))
    for file in wanted:
        if file.name not in contents:
            raise _wrong_file_error(path, data, f"it does not contain {file.name}")
        _check_content(contents[file.name], path, data, file)
    return {name: FileContent(name, content) for name, content in contents.items()}


def _read_zip(path: Path, archive: Download, wanted: Sequence[DataFile]) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(path) as packed:
        members = set(packed.namelist())
        for file in wanted:
            for member in (f"{archive.inside}/{file.name}{ending}" for ending in ENDINGS):
                if member in members:
                    with packed.open(member) as raw:
                        yield file.name, _decompress(raw, member, file.size + 1)


def _read_tar(path: Path, wanted: Sequence[DataFile]) -> Iterator[tuple[str, bytes]]:
    """Yield the files in the order of the archive. Reading stops after the last file that is needed."""
    left = {file.name: file for file in wanted}
    with tarfile.open(path, "r|*") as packed:
        for member in packed:
            file = left.pop(Path(member.name).name, None)
            raw = packed.extractfile(member) if file else None
            if file and raw:
                yield file.name, raw.read(file.size + 1)
            if not left:
                return


def _decompress(raw: IO[bytes], name: str, limit: int) -> bytes:
    """Read at most `limit` decompressed bytes, so that a compressed file can't fill the memory. -1 reads all."""
    if name.endswith(".gz"):
        return gzip.GzipFile(fileobj=raw).read(limit)
    if name.endswith(".xz"):
        return lzma.LZMAFile(raw).read(limit)
    return raw.read(limit)


def _check_content(content: bytes, path: Path, data: DataSet, file: DataFile) -> None:
    """Refuse content that has another checksum or, without a checksum, another size."""
    got = hashlib.sha256(content).hexdigest() if file.sha256 else None
    if got == file.sha256 and (got or len(content) == file.size):
        return
    if len(content) < file.size:
        raise _wrong_file_error(path, data, f"it is cut short, at {len(content):,} of {file.size:,} bytes")
    differs = f"the sha256 of its content is {got}, and should be {file.sha256}"
    raise _wrong_file_error(path, data, differs if got else f"it is longer than {file.size:,} bytes")


@contextmanager
def _report_damage(path: Path, data: DataSet) -> Iterator[None]:
    """Turn the errors of a damaged or unreadable file into ours."""
    try:
        yield
    except DAMAGE as error:
        raise _wrong_file_error(path, data, f"it is cut short or damaged ({error})") from None
    except OSError as error:
        raise InvalidInput(f"{path} can't be read ({error.strerror}).") from None


def _wrong_file_error(path: Path, data: DataSet, why: str) -> InvalidInput:
    fix = "Put the whole file there." if data.by_hand else f"Delete it, then: discreet data get {data.name}"
    return InvalidInput(f"{path} is not the file that {data.name} needs: {why}.", fix=fix)
