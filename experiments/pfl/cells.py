"""What the paper's tables ask for, cell by cell, and what was measured of it."""

import json
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE / "results.jsonl"
TABLES = ("table2", "table3", "table4", "table5-mnist", "table5-fashion", "table5-cifar")

SPLITS, CLIENTS = TABLES[:3], TABLES[3:]  # Tables 2 to 4, and the parts of Table 5
SETTINGS = ("paper", "better", "authors")

Result = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """One number of a table: `epsilon` is the paper's, None without privacy; `overlapping` is how clients are dealt.

    `settings` are ours ("paper": what the paper says, and a batch of 256), "better" ones, or the authors'.
    """

    data: str
    model: str
    epsilon: float | None
    epochs: int
    rounds: int
    clients: int
    overlapping: bool
    settings: str = "paper"


def table(name: str) -> dict[str, Any]:
    return tomllib.loads((HERE / f"{name}.toml").read_text())


def cells(table: dict[str, Any]) -> Iterator[Cell]:
    """All cells of a table; with more clients than hold a tenth each, both overlapping and disjoint."""
    for column in table["column"]:
        for epochs, rounds in table["splits"]:
            for clients in table["clients"]:
                ways = (True, False) if table.get("overlapping") and clients > 10 else (False,)
                for overlapping in ways:
                    for model in table["models"]:
                        epsilon = column.get("epsilon")
                        yield Cell(table["data"], model, epsilon, epochs, rounds, clients, overlapping)


def with_settings(settings: str, cells: list[Cell]) -> list[Cell]:
    """Return the cells with other settings. In the authors' code, two or more clients always overlap."""
    if settings != "authors":
        return [replace(cell, settings=settings) for cell in cells]
    changed = [replace(cell, settings=settings, overlapping=cell.clients > 1) for cell in cells]
    return list(dict.fromkeys(changed))


def results() -> list[Result]:
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


def select_results(results: list[Result], **wanted: Any) -> list[Result]:
    return [each for each in results if all(each[name] == value for name, value in wanted.items())]


def ten_clients(results: list[Result], settings: str) -> list[Result]:
    """Of ten clients: disjoint, or, in the authors' code, each with a tenth that it drew by itself."""
    return select_results(results, clients=10, settings=settings, overlapping=settings == "authors")


def were_run(table: dict[str, Any], results: list[Result], settings: str = "paper") -> tuple[int, int]:
    """How many cells of a table have a result, and how many there are."""
    wanted = with_settings(settings, list(cells(table)))
    return sum(bool(select_results(results, **asdict(cell))) for cell in wanted), len(wanted)
