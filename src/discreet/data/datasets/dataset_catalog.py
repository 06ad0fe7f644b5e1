"""The catalog of data sets: their files, checksums, download addresses and licences."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType

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
    classes: int | None
    licence: str
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


def _read_files(folder: str) -> Mapping[str, DataFile]:
    """Return the files of one folder, as checksums.txt lists them."""
    return {
        name: DataFile(name, int(size), None if sha256 == "-" else sha256)
        for sha256, size, path in _read_checksums()
        for parent, name in [path.split("/")]
        if parent == folder
    }


@cache
def _read_checksums() -> list[list[str]]:
    """Read (sha256, size, path) of every file of every data set."""
    lines = files(__package__).joinpath("checksums.txt").read_text().splitlines()
    return [line.split() for line in lines if not line.startswith("#")]


def _mirrored_downloads(mirrors: tuple[str, ...], *parts: tuple[str, int, str]) -> tuple[Download, ...]:
    """Return single files, each given as (name, size, md5), that every mirror offers."""
    return tuple(
        Download(name, tuple(mirror + name for mirror in mirrors), f"md5:{md5}", size) for name, size, md5 in parts
    )


def _archive_download(url: str, size: int, md5: str, *, inside: str) -> tuple[Download, ...]:
    """Return one archive."""
    return (Download(url.rsplit("/", 1)[1], (url,), f"md5:{md5}", size, inside),)


MNIST = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
QMNIST = ("https://raw.githubusercontent.com/facebookresearch/qmnist/master/",)
FASHION = (
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
)
CIFAR = "https://www.cs.toronto.edu/~kriz/"

_CATALOG = (
    DataSet(
        name="mnist",
        folder="mnist",
        files=_read_files("mnist"),
        train=60_000,
        test=10_000,
        classes=10,
        licence="CC BY-SA 3.0",
        natural_clients="539 writers",
        optional=("qmnist-train-labels-idx2-int",),
        downloads=(
            *_mirrored_downloads(
                MNIST,
                ("train-images-idx3-ubyte.gz", 9_912_422, "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
                ("train-labels-idx1-ubyte.gz", 28_881, "d53e105ee54ea40749a09fcbcd1e9432"),
                ("t10k-images-idx3-ubyte.gz", 1_648_877, "9fb629c4189551a2d022fa330f9573f3"),
                ("t10k-labels-idx1-ubyte.gz", 4_542, "ec29112dd5afa0611ce80d1b7f02629c"),
            ),
            *_mirrored_downloads(
                QMNIST, ("qmnist-train-labels-idx2-int.gz", 463_024, "0058f8dd561b90ffdd0f734c6a30e5e4")
            ),
        ),
    ),
    DataSet(
        name="fashion_mnist",
        folder="fashion-mnist",
        files=_read_files("fashion-mnist"),
        train=60_000,
        test=10_000,
        classes=10,
        licence="MIT",
        downloads=_mirrored_downloads(
            FASHION,
            ("train-images-idx3-ubyte.gz", 26_421_880, "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
            ("train-labels-idx1-ubyte.gz", 29_515, "25c81989df183df01b3e8a0aad5dffbe"),
            ("t10k-images-idx3-ubyte.gz", 4_422_102, "bef4ecab320f06d8554ea6380940ec79"),
            ("t10k-labels-idx1-ubyte.gz", 5_148, "bb300cfdad3c16e7a12a480ee83cd310"),
        ),
    ),
    DataSet(
        name="cifar10",
        folder="cifar10",
        files=_read_files("cifar10"),
        train=50_000,
        test=10_000,
        classes=10,
        licence="none stated",
        downloads=_archive_download(
            f"{CIFAR}cifar-10-binary.tar.gz",
            170_052_171,
            "c32a1d4ab5d03f1284b67883e8d87530",
            inside="cifar-10-batches-bin",
        ),
    ),
    DataSet(
        name="cifar100",
        folder="cifar100",
        files=_read_files("cifar100"),
        train=50_000,
        test=10_000,
        classes=100,
        licence="none stated",
        downloads=_archive_download(
            f"{CIFAR}cifar-100-binary.tar.gz",
            168_513_733,
            "03b5dce01913d631647c71ecec9e9cb8",
            inside="cifar-100-binary",
        ),
    ),
    DataSet(
        name="emnist",
        folder="emnist",
        files=_read_files("emnist"),
        train=697_932,
        test=116_323,
        classes=62,
        licence="public domain",
        downloads=_archive_download(
            "https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip",
            561_753_746,
            "58c8d27c78d21e728a6bc7b3cc06412e",
            inside="gzip",
        ),
    ),
    DataSet(
        name="femnist",
        folder="femnist",
        files=_read_files("femnist"),
        train=43_552,
        test=12_398,
        classes=62,
        licence="public domain",
        natural_clients="540 writers",
        by_hand="femnist_540_writers.npz of LEAF's FEMNIST (from NIST's Special Database 19), with the arrays images "
        "(uint8, n by 28 by 28, paper 255, ink 0), labels (0 to 61: digits, capitals, small letters), writer (an index "
        "into writer_ids), split (0 train, 1 test), writer_ids and writer_complete (whether all of a writer is there)",
    ),
    DataSet(
        name="acs_income",
        folder="acs-income",
        files=_read_files("acs-income"),
        train=1_434_805,
        test=0,
        classes=2,
        licence="public use",
        natural_clients="51 states",
        held_out=0.2,
        by_hand="a CSV for each state, AK.csv to WY.csv, with the columns AGEP,COW,SCHL,MAR,OCCP,POBP,RELP,WKHP,SEX,"
        "RAC1P,PINCP, of the US Census Bureau's American Community Survey 2018 (1-year PUMS, person records) as the "
        "task ACSIncome of folktables filters it (PINCP: 1 above 50,000 dollars, else 0; MAR: 1 married, 2 not)",
    ),
    DataSet(
        name="lending_club",
        folder="lending-club",
        files=_read_files("lending-club"),
        train=42_535,
        test=0,
        classes=None,
        licence="MIT",
        natural_clients="50 states",
        held_out=0.2,
        by_hand="loans_2007_2011.csv of Lending Club's published loan statistics 2007-2011, with the columns issue_d "
        "and earliest_cr_line (as 2007-06), int_rate and revol_util (percent), term (months), emp_length (n/a, < 1 "
        "year to 10+ years), loan_amnt, home_ownership, annual_inc, verification_status, purpose, addr_state, dti, "
        "delinq_2yrs, inq_last_6mths, mths_since_last_delinq, mths_since_last_record, open_acc, pub_rec, revol_bal, "
        "total_acc and pub_rec_bankruptcies, empty where nothing is known",
    ),
)
DATA_SETS = MappingProxyType({data.name: data for data in _CATALOG})
