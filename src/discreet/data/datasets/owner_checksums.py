"""Checksums that the owner of the data gives for files that are not published, and what the card says about them."""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from discreet.data.datasets.dataset_catalog import DataFile, DataSet
from discreet.errors import InvalidInput
from discreet.privacy.card_lines import Line
from discreet.words import fill

SUMS = "SHA256SUMS"  # written by sha256sum: a checksum, two spaces or a space and a star, and a name
DIGITS = re.compile("[0-9a-f]{64}")
LINE = re.compile(r"([0-9A-Fa-f]{64}) [ *](.+)")
FEW = 3  # files that a sentence names one by one


class FileContent(NamedTuple):
    """The bytes of a file, decompressed.

    Attributes:
        owner_sha256: Their checksum if only the data's owner vouches for them. None for a known or published file.
    """

    name: str
    data: bytes
    owner_sha256: str | None = None


def owner_checksum(folder: Path, data: DataSet, file: DataFile) -> str | None:
    """Return the owner's sha256 of the file's decompressed content, from NAME.sha256 or else from SHA256SUMS."""
    if not data.by_hand:
        return None
    own = folder / f"{file.name}.sha256"
    if own.is_file():
        words = _read_text(own).split()
        if not words or not DIGITS.fullmatch(words[0].lower()):
            got = f"{words[0]!r:.80}" if words else "nothing"
            raise InvalidInput(
                f"{own} must start with the 64 hexadecimal digits of a sha256, and got {got}.",
                fix=owner_checksum_hint(file.name),
            )
        return words[0].lower()
    return _read_sums_file(folder / SUMS).get(file.name)


def owner_checksum_hint(name: str) -> str:
    """Explain how an owner vouches for a file."""
    return (
        f"For a file of your own in the same form, write the sha256 of its uncompressed content into {name}.sha256 "
        f"in the same folder, or into a {SUMS} there, with a line for each file as sha256sum writes it."
    )


def describe_origin(contents: Sequence[FileContent], public: str) -> tuple[str, ...]:
    """Say on the card where the files come from; `public` is the sentence for known files."""
    own = [content.name for content in contents if content.owner_sha256]
    if not own:
        return (public,)
    fact = Line(_describe_files(own), "owner")
    return (fact,) if len(own) == len(contents) else (fact, fill("data.owner.other_files", sentence=public))


def disclose_checksums(contents: Sequence[FileContent]) -> tuple[str, ...]:
    """Say on the card that the checksums of the owner's files are not covered by the guarantee.

    A checksum lets anybody who guesses a whole file verify the guess.
    """
    own = {content.name: content.owner_sha256 for content in contents if content.owner_sha256}
    if not own:
        return ()
    if len(own) <= FEW:
        sums = ", ".join(fill("not_covered.checksum", sha256=sha256, name=name) for name, sha256 in own.items())
    else:
        lines = "".join(f"{sha256}  {name}\n" for name, sha256 in sorted(own.items()))
        sha256 = hashlib.sha256(lines.encode()).hexdigest()
        sums = fill("not_covered.checksum_of_many", sha256=sha256, sums=SUMS, count=len(own))
    return (fill("not_covered.checksums", checksums=sums),)


def _describe_files(names: Sequence[str]) -> str:
    if len(names) > FEW:
        return fill("data.owner.many_files", count=len(names), first=min(names), last=max(names))
    return fill("data.owner.one_file" if len(names) == 1 else "data.owner.few_files", files=", ".join(names))


def _read_sums_file(sums: Path) -> dict[str, str]:
    """Read the checksum of each file from SHA256SUMS. Names may start with ./"""
    if not sums.is_file():
        return {}
    checksums = {}
    for number, line in enumerate(_read_text(sums).splitlines(), start=1):
        if not line.strip():
            continue
        if not (parsed := LINE.fullmatch(line.rstrip())):
            raise InvalidInput(
                f"Line {number} of {sums} must be a sha256 of 64 hexadecimal digits, two spaces and a name, and got "
                f"{line!r:.90}.",
                fix="Write it by: sha256sum NAME… > SHA256SUMS",
            )
        checksums[parsed[2].removeprefix("./")] = parsed[1].lower()
    return checksums


def _read_text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError as error:
        raise InvalidInput(f"{path} can't be read ({error.strerror}).") from None
