"""A run's files as plain data: what is missing is empty, and what can't be read is added to `trouble`."""

import json
import math
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def read_text(path: Path, trouble: list[str]) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        trouble.append(f"{path.name} can't be read ({error.strerror}).")
        return ""


def parse_experiment(texts: dict[str, str], trouble: list[str]) -> dict[str, Any]:
    name = next((name for name in ("resolved.toml", "experiment.toml") if texts[name]), "resolved.toml")
    try:
        return tomllib.loads(texts[name])
    except tomllib.TOMLDecodeError as error:
        trouble.append(f"{name} is no TOML: {error}.")
        return {}


def parse_json(texts: dict[str, str], name: str, trouble: list[str], kind: Any) -> Any:
    if not texts[name]:
        return None
    try:
        data = json.loads(texts[name])
    except ValueError as error:
        trouble.append(f"{name} is no JSON: {error}.")
        return None
    if not isinstance(data, kind):
        trouble.append(f"{name} holds something else than was expected.")
        return None
    return data


def parse_round_lines(text: str, trouble: list[str]) -> dict[int, dict[str, Any]]:
    """Every whole line; a later line about a round replaces an earlier one, as when a run was resumed."""
    found: dict[int, dict[str, Any]] = {}
    *lines, last = text.split("\n") if text else [""]
    for place, line in enumerate([*lines, last], start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            found[int(row["round"])] = row
        except (ValueError, KeyError, TypeError):
            if place <= len(lines):  # the last line, without its newline, is merely unfinished
                trouble.append(f"Line {place} of rounds.jsonl can't be read.")
    return dict(sorted(found.items()))


def json_number(value: Any) -> float | None:
    """The number that JSON holds, also where it had to be a word ("inf", "nan"); else None."""
    if isinstance(value, str) and value.lower() in {"inf", "-inf", "nan"}:
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1e300 or not isinstance(value, int) else math.inf


def value_at(data: Any, path: Sequence[str]) -> Any:
    for name in path:
        data = data.get(name) if isinstance(data, dict) else None
    return data
