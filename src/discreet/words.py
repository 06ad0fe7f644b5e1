"""The words of cards and verdicts in the language of this process: named templates from one file of `languages/`.

`DISCREET_LANGUAGE` names the file; English if it is not set. A file is read when its first word is needed.
"""

import os
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

from discreet.errors import InvalidInput

FOLDER = Path(__file__).parent / "languages"
VARIABLE = "DISCREET_LANGUAGE"
ENGLISH = "en"


def fill(key: str, /, **values: str | int) -> str:
    """Return the template of this name with its placeholders filled in.

    Args:
        key: The template's name with those of its tables: `assumes.seeded`.
        values: The placeholders. They are inserted as they are, so numbers are rounded and formatted by the caller.

    Raises:
        InvalidInput: There is no such language, or its file is not complete.
    """
    return load_templates(FOLDER, os.environ.get(VARIABLE) or ENGLISH)[key].format_map(values)


def check_language() -> None:
    """Refuse an unknown language or an incomplete file, before anything begins."""
    if os.environ.get(VARIABLE):
        load_templates(FOLDER, os.environ[VARIABLE])


def languages(folder: Path) -> list[str]:
    """Return the languages that have a file in this folder."""
    return sorted(path.stem for path in folder.glob("*.toml"))


@cache
def load_templates(folder: Path, language: str) -> Mapping[str, str]:
    """Return the templates of a language by their names.

    Raises:
        InvalidInput: There is no such language; or its file lacks a template, or has other placeholders than English.
    """
    if language not in (known := languages(folder)):
        raise InvalidInput(
            f"{VARIABLE} must be one of {', '.join(known)}, and got {language!r}.", fix="Unset it for English."
        )
    templates = read_templates(folder / f"{language}.toml")
    if language != ENGLISH:
        _check_translation(f"{language}.toml", templates, load_templates(folder, ENGLISH))
    return templates


def read_templates(path: Path) -> dict[str, str]:
    """Read a language file, without comparing it with another.

    Raises:
        InvalidInput: The file can't be read, or holds something that is not text.
    """
    try:
        templates = dict(_flatten(tomllib.loads(path.read_text(encoding="utf-8"))))
    except (OSError, ValueError) as error:
        raise InvalidInput(f"The language file {path} can't be read: {error}.") from None
    if wrong := [key for key, template in templates.items() if not isinstance(template, str)]:
        raise InvalidInput(f"{path.name} must hold text only, and {wrong[0]} is {templates[wrong[0]]!r}.")
    return templates


def placeholders(template: str) -> set[str]:
    """Return the placeholders of a template, each as it is written between its braces.

    Raises:
        ValueError: A brace is not closed.
    """
    return {
        name + (f"!{conversion}" if conversion else "") + (f":{form}" if form else "")
        for _, name, form, conversion in Formatter().parse(template)
        if name is not None
    }


def _check_translation(name: str, own: Mapping[str, str], english: Mapping[str, str]) -> None:
    missing, unknown = [key for key in english if key not in own], [key for key in own if key not in english]
    if missing or unknown:
        what = f"lacks {', '.join(missing[:5])}" if missing else f"must not have {', '.join(unknown[:5])}"
        raise InvalidInput(f"The language file {name} {what}.", fix=f"It needs the keys of {ENGLISH}.toml.")
    for key, template in own.items():
        try:
            if placeholders(template) == placeholders(english[key]):
                continue
            got = ", ".join(sorted(placeholders(template))) or "none"
        except ValueError as error:
            got = f"{template!r} ({error})"
        expected = ", ".join(sorted(placeholders(english[key]))) or "none"
        raise InvalidInput(f"The placeholders of {key} in {name} must be {expected}, and got {got}.")


def _flatten(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
