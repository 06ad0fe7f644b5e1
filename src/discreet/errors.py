"""Errors for users: each says what is wrong and what to do, and has an exit code."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher


def escape_controls(text: str) -> str:
    """Return the text with control characters, which could move a terminal's cursor or hide what follows, spelt out."""
    return "".join(
        letter if letter.isprintable() or letter in "\n\t" else letter.encode("unicode_escape").decode()
        for letter in text
    )


FEW_NAMES, NEAREST = 12, 5  # a sentence lists a few names in full, and of more the nearest or first ones
MOST_COMPARED = 5_000  # names that are compared with the wanted one
LONGEST_WORD = 400  # a path may be long; a cell, a value or a name that is longer is not read to its end by anybody


def shorten_words(text: str) -> str:
    """Return the text with the middle of each very long word left out, so that an error stays one readable sentence."""
    return re.sub(rf"\S{{{LONGEST_WORD + 1},}}", _shorten_word, text)


def _shorten_word(found: re.Match[str]) -> str:
    word = found.group()
    return f"{word[:80]}…{word[-40:]}"


def shorten_names(names: Sequence[str]) -> str:
    """Return the names for a sentence: all of a few, and of many the first ones and how many others."""
    if len(names) <= FEW_NAMES:
        return ", ".join(name[:60] for name in names)
    return f"{', '.join(name[:60] for name in names[:NEAREST])} and {len(names) - NEAREST:,} others"


def nearest_names(names: Sequence[str], wanted: str) -> str:
    """Return the names for an error: all of a few, and of many the most alike to the wanted one and how many others."""
    if len(names) <= FEW_NAMES:
        return shorten_names(names)
    compared, rest = names[:MOST_COMPARED], names[MOST_COMPARED:]
    alike = sorted(compared, key=lambda name: -SequenceMatcher(None, wanted[:60], name[:60]).ratio())
    return shorten_names([*alike, *rest])


class DiscreetError(Exception):
    """Base of all errors that are reported without a traceback.

    Attributes:
        problem: One sentence that says what must hold and what was got.
        fix: What to do about it.
        exit_code: Exit code of the command line.
    """

    exit_code = 1

    def __init__(self, problem: str, *, fix: str = "") -> None:
        self.problem, self.fix = (shorten_words(escape_controls(text)) for text in (problem, fix))
        super().__init__(f"{self.problem} {self.fix}".strip())


class InvalidInput(DiscreetError):
    """A value, a name or a file is not valid."""

    exit_code = 2


class UnsoundCombination(InvalidInput):
    """Parts that are valid alone would void the guarantee together."""


class Unsupported(InvalidInput):
    """No sound method in this package can answer the question."""


class MissingExtra(InvalidInput):
    """A library that this needs is not installed; the message names the extra that installs it."""


class CallbackFailed(DiscreetError):
    """A callback of the caller's own raised an error. The rounds that were played stay counted, and are kept."""


class BudgetRefused(DiscreetError):
    """A release would exceed the budget. No data was used."""

    exit_code = 3


class LedgerDamaged(DiscreetError):
    """The ledger's bytes are not those that were written, so its total can't be trusted."""


class LedgerUnavailable(DiscreetError):
    """The ledger could not be read, locked or written. Its content is unchanged."""


class EnginesDisagree(DiscreetError):
    """Two accountants give values for one event that can't both be right."""
