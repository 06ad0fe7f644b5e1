"""A data set's files as bytes: found in any compression or in their archive, and held against their checksums."""

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

from discreet.data.datasets.dataset_catalog import DataSet, Download, File, named
from discreet.data.datasets.owner_checksums import Content, how_to, vouched
from discreet.errors import InvalidInput
from discreet.paths import Places

ENDINGS = ("", ".gz", ".xz")
DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile)
ELSEWHERE = "--data-dir or DISCREET_DATA names another place."


def content(places: Places, dataset: str, file: str) -> Content:
    """The file's own bytes, whatever compresses it on disk, and whether only the data's owner vouches for them.

    Guarantee: they have the checksum in the catalog, or that of the archive they come from; where neither is
    published, the size. What the owner vouches for has the owner's checksum, and is not empty.
    """
    return contents(places, dataset, [file])[0]


def contents(places: Places, dataset: str, wanted: Sequence[str]) -> list[Content]:
    """Several files of one data set; loose ones are decompressed side by side, an archive is opened once."""
    data = named(dataset)
    folder = places.data / data.folder
    loose = {name: path for name in wanted if (path := at(folder, data, data.files[name]))}
    read: dict[str, Content] = {}
    if packed := [data.files[name] for name in wanted if name not in loose]:
        archive = archive_in(folder, data)
        if archive is None:
            raise missing(folder, data, packed[0])
        read |= _unpacked(folder / archive.name, archive, data, packed)
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:  # decompression lets go of Python's lock
        read |= zip(loose, pool.map(lambda name: _loose(loose[name], data, data.files[name]), loose), strict=True)
    return [read[name] for name in wanted]


def at(folder: Path, data: DataSet, file: File) -> Path | None:
    """Where the file lies by itself, in the data set's folder or where its archive unpacks to."""
    inside = [folder / archive.inside for archive in data.downloads if archive.inside]
    found = (under / f"{file.name}{ending}" for under in (folder, *inside) for ending in ENDINGS)
    return next((path for path in found if path.is_file()), None)


def missing(folder: Path, data: DataSet, file: File) -> InvalidInput:
    fix = f"Get it with: discreet data get {data.name}; {ELSEWHERE}"
    if data.by_hand:
        fix = f"Put there {data.by_hand}; {ELSEWHERE} {how_to(file.name)}"
    return InvalidInput(f"{data.name} is not here: {folder} holds no {file.name}, plain, .gz or .xz.", fix=fix)


def archive_in(folder: Path, data: DataSet) -> Download | None:
    """The data set's archive, if it lies there as it was published."""
    return next((each for each in data.downloads if each.inside and (folder / each.name).is_file()), None)


def check_archive(path: Path, archive: Download, data: DataSet) -> None:
    """Refuse an archive that is not the published one."""
    algorithm, published = archive.checksum.split(":")
    with _refusing_damage(path, data), open(path, "rb") as file:
        digest = hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False))
    if (got := digest.hexdigest()) != published:
        raise _other(path, data, f"its {algorithm} is {got}, and should be {published}")


def _loose(path: Path, data: DataSet, file: File) -> Content:
    with _refusing_damage(path, data), open(path, "rb") as raw:
        read = _expanded(raw, path.name, -1 if data.by_hand else file.size + 1)
    if data.by_hand:
        return Content(file.name, read, _by_hand(read, path, data, file))
    _check(read, path, data, file)
    return Content(file.name, read)


def _by_hand(read: bytes, path: Path, data: DataSet, file: File) -> str | None:
    """None for the file that is known; the checksum of one that its owner vouches for; refuses any other."""
    if not read:
        raise _other(path, data, "it is empty")
    got, own = hashlib.sha256(read).hexdigest(), vouched(path.parent, data, file)
    if own and got != own:
        raise InvalidInput(
            f"{path} is not the file that is vouched for beside it: the sha256 of its uncompressed content is {got}, "
            f"and should be {own}.",
            fix="Put that file there, or write its checksum anew.",
        )
    if got == file.sha256:
        return None
    if own:
        return own
    differs = f"the sha256 of its uncompressed content is {got}, and should be {file.sha256}"
    if len(read) < file.size:
        differs = f"it is cut short at {len(read):,} of {file.size:,} bytes, or another file ({differs})"
    raise InvalidInput(
        f"{path} is not the file that is known: {differs}.", fix=f"Put the whole file there. {how_to(file.name)}"
    )


def _unpacked(path: Path, archive: Download, data: DataSet, wanted: Sequence[File]) -> dict[str, Content]:
    if any(file.sha256 is None for file in wanted):
        check_archive(path, archive, data)
    with _refusing_damage(path, data):
        read = dict(_from_zip(path, archive, wanted) if path.suffix == ".zip" else _from_tar(path, wanted))
    for file in wanted:
        if file.name not in read:
            raise _other(path, data, f"it holds no {file.name}")
        _check(read[file.name], path, data, file)
    return {name: Content(name, found) for name, found in read.items()}


def _from_zip(path: Path, archive: Download, wanted: Sequence[File]) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(path) as packed:
        held = set(packed.namelist())
        for file in wanted:
            for member in (f"{archive.inside}/{file.name}{ending}" for ending in ENDINGS):
                if member in held:
                    with packed.open(member) as raw:
                        yield file.name, _expanded(raw, member, file.size + 1)


def _from_tar(path: Path, wanted: Sequence[File]) -> Iterator[tuple[str, bytes]]:
    """In the order of the archive, which is read once and to its end only if it must be."""
    left = {file.name: file for file in wanted}
    with tarfile.open(path, "r|*") as packed:
        for member in packed:
            file = left.pop(Path(member.name).name, None)
            raw = packed.extractfile(member) if file else None
            if file and raw:
                yield file.name, raw.read(file.size + 1)
            if not left:
                return


def _expanded(raw: IO[bytes], name: str, limit: int) -> bytes:
    """At most so many bytes: a file that claims to be small can't fill the memory."""
    if name.endswith(".gz"):
        return gzip.GzipFile(fileobj=raw).read(limit)
    if name.endswith(".xz"):
        return lzma.LZMAFile(raw).read(limit)
    return raw.read(limit)


def _check(read: bytes, path: Path, data: DataSet, file: File) -> None:
    got = hashlib.sha256(read).hexdigest() if file.sha256 else None
    if got == file.sha256 and (got or len(read) == file.size):
        return
    if len(read) < file.size:
        raise _other(path, data, f"it is cut short, at {len(read):,} of {file.size:,} bytes")
    differs = f"the sha256 of its content is {got}, and should be {file.sha256}"
    raise _other(path, data, differs if got else f"it is longer than {file.size:,} bytes")


@contextmanager
def _refusing_damage(path: Path, data: DataSet) -> Iterator[None]:
    try:
        yield
    except DAMAGE as error:
        raise _other(path, data, f"it is cut short or damaged ({error})") from None
    except OSError as error:
        raise InvalidInput(f"{path} can't be read ({error.strerror}).") from None


def _other(path: Path, data: DataSet, why: str) -> InvalidInput:
    fix = "Put the whole file there." if data.by_hand else f"Delete it, then: discreet data get {data.name}"
    return InvalidInput(f"{path} is not the file that {data.name} needs: {why}.", fix=fix)
