"""Download a data set: into a temporary file, which is renamed once its checksum is right."""

import hashlib
import os
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import IO

from discreet.data.datasets.dataset_catalog import DataSet, Download
from discreet.data.datasets.dataset_files import DATA_DIR_HINT, find_archive, find_data_file
from discreet.durable_files import sync_directory
from discreet.errors import DiscreetError, InvalidInput
from discreet.logs import get_log
from discreet.paths import Paths

log = get_log(__name__)

CHUNK = 1 << 18
TIMEOUT = 30  # seconds without any data

Progress = Callable[[int], None]


class _MirrorFailed(Exception):
    """A mirror could not deliver the file; the message says why."""


def download_missing(paths: Paths, data: DataSet, progress: Callable[[Download, int], None]) -> list[Path]:
    """Download the files that are missing, and return their paths.

    A file that can't be downloaded is skipped here, and `verify_files` reports it.
    """
    folder = paths.data / data.folder
    return [
        download_file(source, data, folder, partial(progress, source))
        for source in data.downloads
        if not _is_present(source, data, folder)
    ]


def _is_present(source: Download, data: DataSet, folder: Path) -> bool:
    if source.inside is None:
        return find_data_file(folder, data, data.files[Path(source.name).stem]) is not None
    return find_archive(folder, data) is not None or all(
        find_data_file(folder, data, file) for file in data.files.values()
    )


def download_file(source: Download, data: DataSet, folder: Path, progress: Progress = lambda got: None) -> Path:
    """Download one file into the folder, from the first mirror that delivers it.

    Args:
        progress: Is called with the number of bytes received so far.

    Guarantee: a file under this name is always complete, has the published checksum, and is on the disk.

    Raises:
        DiscreetError: No mirror delivered the file.
        InvalidInput: The folder can't be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        draft, name = tempfile.mkstemp(dir=folder, prefix=f".{source.name}.", suffix=".part")
    except OSError as error:
        raise InvalidInput(f"{folder} can't be written to ({error.strerror}).", fix=DATA_DIR_HINT) from None
    try:
        with os.fdopen(draft, "wb") as file:
            _try_mirrors(source, data, folder, file, progress)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)  # a temporary file is readable by its owner only
        os.replace(name, folder / source.name)
        sync_directory(folder)
    finally:
        Path(name).unlink(missing_ok=True)
        with suppress(OSError):
            folder.rmdir()  # removes the folder only if it is empty
    return folder / source.name


def _try_mirrors(source: Download, data: DataSet, folder: Path, file: IO[bytes], progress: Progress) -> None:
    failures = []
    for url in source.urls:
        file.seek(0)
        file.truncate()
        log.info("download started", dataset=data.name, url=url, bytes=source.size)
        try:
            _stream(url, source, file, progress)
        except _MirrorFailed as failure:
            failures.append(f"{url}: {failure}")
            log.warning("download failed", dataset=data.name, url=url)
        else:
            log.info("download verified", dataset=data.name, url=url, checksum=source.checksum)
            return
    raise DiscreetError(
        f"{data.name} could not be downloaded ({'; '.join(failures)}).",
        fix=f"Without a network, put {source.name} from {source.urls[0]} into {folder}; {DATA_DIR_HINT}",
    )


def _stream(url: str, source: Download, file: IO[bytes], progress: Progress) -> None:
    algorithm, published = source.checksum.split(":")
    digest, got = hashlib.new(algorithm, usedforsecurity=False), 0
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:  # nosec B310 # an address of our catalog
            while chunk := answer.read(CHUNK):
                got += len(chunk)
                if got > source.size:
                    raise _MirrorFailed(f"it sent more than {source.size:,} bytes")
                file.write(chunk)
                digest.update(chunk)
                progress(got)
    except (urllib.error.URLError, HTTPException, TimeoutError, ConnectionError) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()  # it holds the answer, which Python 3.14 would warn of
        raise _MirrorFailed(_reason(error)) from None
    if got < source.size:
        raise _MirrorFailed(f"it sent {got:,} of {source.size:,} bytes")
    if digest.hexdigest() != published:
        raise _MirrorFailed(f"what came has {algorithm} {digest.hexdigest()}, not {published}")


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", error)
    words = getattr(reason, "strerror", None) or str(reason) or type(error).__name__
    return " ".join(str(words).split())
