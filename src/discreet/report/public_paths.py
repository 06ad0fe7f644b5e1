"""Paths in what may be given to anyone: the name of a file, without the folders of somebody's machine."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from discreet.experiment.run_directory.run_data import RunData
from discreet.privacy.guarantee import Guarantee

FILES = ("path", "validation_path", "ranges", "to")  # settings that name files
FOLDERS = re.compile(r"(?<![\w./~:\\-])(?:~|[A-Za-z]:)?[/\\](?:[^\s/\\'\"<>|]+[/\\])+(?=[^\s/\\'\"<>|])")


def hide_run_folders(run: RunData) -> RunData:
    """Return a run whose settings and cards name files without their folders, for a page that anyone may see."""
    return replace(
        run,
        experiment=hide_folders(run.experiment),
        resolved_text=_hide_in_toml(run.resolved_text),
        guarantees=tuple(map(_hide_in_card, run.guarantees)),
    )


def _hide_in_toml(text: str) -> str:
    try:
        document = tomlkit.parse(text)
    except TOMLKitError:
        return "Left out: it can't be parsed."
    for name, value in document.unwrap().items():
        if (hidden := hide_folders(value, name)) != value:
            document[name] = hidden
    return tomlkit.dumps(document)


def _hide_in_card(card: Guarantee) -> Guarantee:
    return replace(
        card,
        on_word_of=tuple(map(hide_folders_in_text, card.on_word_of)),
        assumptions=tuple(map(hide_folders_in_text, card.assumptions)),
        not_covered=tuple(map(hide_folders_in_text, card.not_covered)),
    )


def hide_folders(value: Any, name: str = "") -> Any:
    """Return settings in which every file is named without its folder: absolute paths, and settings that name files.

    Args:
        value: A table, a list or a value of an experiment.
        name: The name of the setting.
    """
    if isinstance(value, Mapping):
        return {key: hide_folders(each, str(key)) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [hide_folders(each, name) for each in value]
    if not isinstance(value, str):
        return value
    posix, windows = PurePosixPath(value), PureWindowsPath(value)
    if windows.is_absolute() or (name in FILES and windows.drive):
        return windows.name
    return posix.name if name in FILES or posix.is_absolute() or value.startswith("~/") else value


def hide_folders_in_text(text: str) -> str:
    """Return a sentence in which every absolute path is the name of its file."""
    return FOLDERS.sub("", text)
