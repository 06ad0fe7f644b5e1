"""`discreet ledger`: makes the file that keeps a budget, shows what is spent of it, and checks its chain."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table

from discreet.cli.options import (
    POSITIVE,
    PROBABILITY,
    RelationWord,
    UnitOption,
    ViewOption,
    needed,
    parse_relation,
    parse_unit,
)
from discreet.cli.output import Json, emit
from discreet.part import from_plain
from discreet.privacy.release import Person, Unit, describe_clients, relations_for
from discreet.privacy.wording import compact, round_down, round_up

EPILOG = """\b
Examples:
  discreet ledger create ledger.jsonl --epsilon 4 --delta 1e-5
  discreet ledger create ledger.jsonl --epsilon 4 --delta 1e-5 \\
      --unit person:patient:20 --view public
  discreet ledger show ledger.jsonl --clients
  discreet ledger verify ledger.jsonl

A ledger belongs to the data: it is written before data is touched, outlives
the runs that share it, and refuses what would exceed its budget.
"""

app = typer.Typer(
    help="What is spent of a budget, and whether its record is whole.",
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
)

File: TypeAlias = Annotated[Path, typer.Argument(metavar="PATH", hidden=True)]  # the text above the options tells of it


@app.command()
def show(
    path: File,
    clients: Annotated[bool, typer.Option("--clients", help="Also a line for each client, by its number.")] = False,
    as_json: Json = False,
) -> None:
    """What is spent of each budget in the ledger at PATH."""
    from discreet.privacy.ledger import Ledger

    summary = Ledger.open(path).summary(by_client=clients)
    emit(lambda: summary, lambda: _summary_page(summary), as_json=as_json)


@app.command()
def verify(path: File, as_json: Json = False) -> None:
    """Whether the ledger at PATH is the one that was written.

    Every line carries the hash of the one before, so an edit shows. A cut-off end doesn't: compare the head and the
    number of records with those on the last guarantee card.
    """
    from discreet.privacy.ledger import Ledger

    state = Ledger.open(path).verify()
    emit(lambda: {"intact": True, **state}, lambda: _describe_chain(state), as_json=as_json)


@app.command()
def create(
    path: File,
    epsilon: Annotated[
        float | None, typer.Option(click_type=POSITIVE, metavar="E", help="The most that may be spent.")
    ] = None,
    delta: Annotated[float | None, typer.Option(click_type=PROBABILITY, metavar="D", help="At this delta.")] = None,
    unit: UnitOption = "example",
    view: ViewOption = "server",
    relation: Annotated[
        RelationWord | None,
        typer.Option(
            metavar="HOW",
            show_default=False,
            help="zero-out (default), replace or add-or-remove (default for clients).",
        ),
    ] = None,
    mode: Annotated[
        Literal["filter", "plan"],
        typer.Option(metavar="HOW", show_default=False, help="filter (default) for many runs; plan for one, tighter."),
    ] = "filter",
    as_json: Json = False,
) -> None:
    """A new ledger at PATH, with the most that may be spent.

    A filter holds for any number of runs, each planned after seeing the last. A plan is tighter, and holds for one
    run whose rounds and noise are fixed before it starts. How many examples a client holds is public, so a budget for
    examples or persons is for what stands in their place (zero-out), not for whether they are there.
    """
    from discreet.privacy.ledger import Budget, Ledger

    protected = parse_unit(unit)
    budget = Budget(
        unit=protected,
        relation=relations_for(protected)[0] if relation is None else parse_relation(relation),
        view=view,
        epsilon=needed("--epsilon", epsilon),
        delta=needed("--delta", delta),
    )
    summary = Ledger.create(path, [budget], mode).summary()
    emit(lambda: summary, lambda: _summary_page(summary), as_json=as_json)


@app.command()
def restate(path: File, as_json: Json = False) -> None:
    """Let an older ledger at PATH promise zero-out for examples.

    Older versions promised add-or-remove for examples and persons, which no release keeps: how many examples a client
    holds is public and divides its noise, so a removed one shows. What was spent stays spent, and one line is added.
    """
    from discreet.privacy.ledger import Ledger

    ledger = Ledger.open(path)
    ledger.restate()
    summary = ledger.summary()
    emit(lambda: summary, lambda: _summary_page(summary), as_json=as_json)


def _summary_page(summary: dict[str, Any]) -> Iterator[RenderableType]:
    how = {"filter": "for any number of runs", "plan": "for one planned run"}[summary["mode"]]
    yield f"{summary['path']}: a ledger {how}, made {summary['created'][:10]}"
    yield ""
    yield Padding(_budget_table(summary["budgets"]), (0, 2))
    yield from _client_tables(summary["budgets"])
    yield ""
    counts = summary["releases"]
    yield (
        f"Releases: {counts['committed']:,} committed, {counts['reserved']:,} reserved (counted as spent), "
        f"{counts['voided']:,} voided."
    )
    yield from _describe_chain(summary)


def _budget_table(budgets: list[dict[str, Any]]) -> Table:
    table = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False)
    for heading in ("protects", "from", "neighbours"):
        table.add_column(heading)
    for heading in ("ε spent", "of", "left", "δ"):
        table.add_column(heading, justify="right")
    for budget in budgets:
        table.add_row(
            _describe_unit(from_plain(Unit, budget["unit"]), budget["clients"]),
            budget["view"],
            budget["relation"].replace("_", "-"),
            round_up(budget["spent"]),
            compact(budget["epsilon"]),
            round_down(budget["remaining"]),
            compact(budget["delta"]),
        )
    return table


def _describe_unit(unit: Unit, clients: list[int] | None) -> str:
    named = f"person ({unit.column})" if isinstance(unit, Person) else unit
    if clients is None:
        return named
    return describe_clients(clients) if unit == "client" else f"{named} of {describe_clients(clients)}"


def _client_tables(budgets: list[dict[str, Any]]) -> Iterator[RenderableType]:
    """A line for each client; where all pay alike, there is nothing more to say."""
    for budget in budgets:
        own = budget.get("by_client")
        if own is None:
            continue
        table = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False)
        table.add_column(f"of each, at δ {compact(budget['delta'])}, ε {compact(budget['epsilon'])} allowed")
        for heading in ("ε spent", "left"):
            table.add_column(heading, justify="right")
        for each in own:
            table.add_row(describe_clients(each["clients"]), round_up(each["spent"]), round_down(each["remaining"]))
        yield ""
        yield Padding(table, (0, 2)) if own else "  All clients have paid alike: no line differs from the budget's."


def _describe_chain(state: dict[str, Any]) -> Iterator[RenderableType]:
    yield f"The chain is whole: length {state['records']:,}, head"
    yield f"  {state['head']}"
    if state["recovered"] or state["torn_bytes"]:
        yield "A writer died in mid-line; what it left was told to nobody and counts for nothing."
    for held in state["outstanding"]:
        yield f"Outstanding: {held['key']} (line {held['line']}), until it is committed or voided."
