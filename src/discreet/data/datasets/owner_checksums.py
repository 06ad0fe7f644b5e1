"""Files that nobody publishes: whose checksum the data's owner gives, and what a card says of them."""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from discreet.data.datasets.dataset_catalog import DataFile, DataSet
from discreet.errors import InvalidInput

SUMS = "SHA256SUMS"  # as sha256sum writes it: a checksum, two spaces or a space and a star, and a name
DIGITS = re.compile("[0-9a-f]{64}")
LINE = re.compile(r"([0-9A-Fa-f]{64}) [ *](.+)")
FEW = 3  # files that a sentence can name one by one


class FileContent(NamedTuple):
    """A file's own bytes; `vouched` is their sha256 where the data's owner vouches for them, and nobody else."""

    name: str
    data: bytes
    owner_sha256: str | None = None


def owner_checksum(folder: Path, data: DataSet, file: DataFile) -> str | None:
    """The sha256 that the owner gives for the file's uncompressed content, in NAME.sha256 or else in SHA256SUMS."""
    if not data.by_hand:
        return None
    own = folder / f"{file.name}.sha256"
    if own.is_file():
        words = _read_text(own).split()
        if not words or not DIGITS.fullmatch(words[0].lower()):
            got = f"{words[0]!r:.80}" if words else "nothing"
            raise InvalidInput(
                f"{own} must start with the 64 hexadecimal digits of a sha256, and holds {got}.",
                fix=owner_checksum_hint(file.name),
            )
        return words[0].lower()
    return _read_sums_file(folder / SUMS).get(file.name)


def owner_checksum_hint(name: str) -> str:
    return (
        f"For a file of your own in the same form, write the sha256 of its uncompressed content into {name}.sha256 "
        f"beside it, or into a {SUMS} there, which holds a line for each file as sha256sum writes it."
    )


def describe_origin(read: Sequence[FileContent], public: str) -> tuple[str, ...]:
    """What a card says of whose data it is; `public` is that sentence for the files that are known."""
    own = [each.name for each in read if each.owner_sha256]
    if not own:
        return (public,)
    named = _name_files(own)
    said = (f"{named} as the data's owner vouches, not as known to the public; nobody here checked what {_it(own)}.",)
    return said if len(own) == len(read) else (*said, f"Of the other files: {public}")


def disclose_checksums(read: Sequence[FileContent]) -> tuple[str, ...]:
    """For what a card doesn't cover: a checksum lets whoever guesses all of a file see that the guess is right."""
    own = {each.name: each.owner_sha256 for each in read if each.owner_sha256}
    if not own:
        return ()
    if len(own) <= FEW:
        sums = ", ".join(f"{sha256} of {name}" for name, sha256 in own.items())
    else:
        lines = "".join(f"{sha256}  {name}\n" for name, sha256 in sorted(own.items()))
        sums = f"{hashlib.sha256(lines.encode()).hexdigest()} of the sorted {SUMS} of {len(own)} files"
    return (f"That the data is the file with this sha256, by which a right guess at all of it shows: {sums}.",)


def _name_files(names: Sequence[str]) -> str:
    if len(names) <= FEW:
        return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'}"
    return f"{len(names)} files from {min(names)} to {max(names)} are"


def _it(names: Sequence[str]) -> str:
    return "it holds" if len(names) == 1 else "they hold"


def _read_sums_file(sums: Path) -> dict[str, str]:
    """The checksum of each name, which may have ./ before it."""
    if not sums.is_file():
        return {}
    found = {}
    for number, line in enumerate(_read_text(sums).splitlines(), start=1):
        if not line.strip():
            continue
        if not (parsed := LINE.fullmatch(line.rstrip())):
            raise InvalidInput(
                f"Line {number} of {sums} must be a sha256 of 64 hexadecimal digits, two spaces and a name, and is "
                f"{line!r:.90}.",
                fix="Write it by: sha256sum NAME… > SHA256SUMS",
            )
        found[parsed[2].removeprefix("./")] = parsed[1].lower()
    return found


def _read_text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError as error:
        raise InvalidInput(f"{path} can't be read ({error.strerror}).") from None
