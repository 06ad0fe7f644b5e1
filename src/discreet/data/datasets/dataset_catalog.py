"""The catalog of data sets, read from data_sets.toml: their files, checksums, download addresses and licences."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from discreet.errors import InvalidInput


@dataclass(frozen=True)
class DataFile:
    """One file of a data set.

    Attributes:
        name: The file name without the ending of a compression format.
        size: Bytes when decompressed.
        sha256: Checksum of the decompressed bytes. None if only a checksum of the archive is published.
    """

    name: str
    size: int
    sha256: str | None


@dataclass(frozen=True)
class Download:
    """One file to download: a single compressed file, or an archive of several files.

    Attributes:
        name: The file name that is published.
        urls: Mirrors that offer the same bytes.
        checksum: The published checksum, with the name of its algorithm in front: "md5:…".
        size: Bytes to download.
        inside: The folder inside the archive that contains the files. None for a single file.
    """

    name: str
    urls: tuple[str, ...]
    checksum: str
    size: int
    inside: str | None = None


@dataclass(frozen=True)
class DataSet:
    """One entry of the catalog.

    Attributes:
        folder: The name of the folder that contains the files, below the folder of all data sets.
        train: Number of training examples.
        test: Number of published test examples.
        classes: Number of classes. None for a regression.
        by_hand: What the user must put into the folder, if these files can't be downloaded.
        optional: Files that the data set is complete without.
        natural_clients: The number and kind of clients that the data itself names.
        held_out: The share of examples that a task tests on by default, if no test set is published.
    """

    name: str
    folder: str
    files: Mapping[str, DataFile]
    train: int
    test: int
    licence: str
    classes: int | None = None
    downloads: tuple[Download, ...] = ()
    by_hand: str = ""
    optional: tuple[str, ...] = ()
    natural_clients: str = ""
    held_out: float = 0.0

    @property
    def size(self) -> int:
        """Bytes to download, or bytes of the files if they can't be downloaded."""
        return sum(part.size for part in self.downloads or self.files.values())


def find_data_set(name: str) -> DataSet:
    """Return the data set with this name. Hyphens and underscores are the same."""
    data = DATA_SETS.get(name.replace("-", "_"))
    if data is None:
        raise InvalidInput(f"A data set must be one of {', '.join(DATA_SETS)}, and got {name!r:.40}.")
    return data


def _read_catalog() -> Mapping[str, DataSet]:
    """Read every data set, by its name."""
    entries = tomllib.loads(files(__package__).joinpath("data_sets.toml").read_text(encoding="utf-8"))
    return {name: _read_data_set(name, entry) for name, entry in entries.items()}


def _read_data_set(name: str, entry: dict[str, Any]) -> DataSet:
    """Build one data set from its entry."""
    rows = [line.split(maxsplit=2) for line in entry.pop("files").strip().splitlines()]
    data_files = {file: DataFile(file, int(size), None if sha256 == "-" else sha256) for sha256, size, file in rows}
    downloads = tuple(
        Download(
            name=file["name"],
            urls=tuple(mirror + file["name"] for mirror in source["mirrors"]),
            checksum=f"md5:{file['md5']}",
            size=file["size"],
            inside=source.get("inside"),
        )
        for source in entry.pop("downloads", ())
        for file in source["files"]
    )
    optional = tuple(entry.pop("optional", ()))
    return DataSet(name, name.replace("_", "-"), data_files, downloads=downloads, optional=optional, **entry)


DATA_SETS = MappingProxyType(_read_catalog())
