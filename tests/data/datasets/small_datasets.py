"""A data set small enough for a test, in place of the published one of that name."""

import gzip
import hashlib
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet.data.datasets import dataset_catalog
from discreet.data.datasets.dataset_catalog import DataFile, DataSet, Download

PACK: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}


def idx_of(values: NDArray[np.uint8] | NDArray[np.int32]) -> bytes:
    kind = b"\x08" if values.dtype == np.uint8 else b"\x0c"
    lengths = np.array(values.shape, ">u4").tobytes()
    return b"\0\0" + kind + bytes([values.ndim]) + lengths + values.astype(values.dtype.newbyteorder(">")).tobytes()


def publish(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    held: Mapping[str, bytes],
    *,
    archive: bytes = b"",
    checksums: bool = True,
) -> DataSet:
    """From here on the data set of this name consists of these files, and of this archive if it has one."""
    files = {
        file: DataFile(file, len(content), hashlib.sha256(content).hexdigest() if checksums else None)
        for file, content in held.items()
    }
    was = dataset_catalog.DATA_SETS[name]
    downloads = was.downloads
    if archive:
        only: Download = downloads[0]
        downloads = (replace(only, checksum=f"md5:{hashlib.md5(archive).hexdigest()}", size=len(archive)),)
    data = replace(was, files=files, downloads=downloads, optional=())
    monkeypatch.setattr(dataset_catalog, "DATA_SETS", {**dataset_catalog.DATA_SETS, name: data})
    return data


def put(folder: Path, held: Mapping[str, bytes], ending: str = "") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in held.items():
        (folder / f"{name}{ending}").write_bytes(PACK[ending](content))


def tar_of(held: Mapping[str, bytes], inside: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as packed:
        for name, content in held.items():
            about = tarfile.TarInfo(f"{inside}/{name}")
            about.size = len(content)
            packed.addfile(about, io.BytesIO(content))
    return out.getvalue()


def zip_of(held: Mapping[str, bytes], inside: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        for name, content in held.items():
            packed.writestr(f"{inside}/{name}.gz", gzip.compress(content))
    return out.getvalue()
