"""`discreet ledger`: create the file that keeps a privacy budget, show what is spent, and verify its hash chain."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table

from discreet.cli.help_page import command_group
from discreet.cli.options import (
    POSITIVE,
    PROBABILITY,
    RelationWord,
    UnitOption,
    ViewOption,
    number_option,
    parse_relation,
    parse_unit,
    parse_view,
)
from discreet.cli.output import Json, emit
from discreet.cli.text_table import text_table
from discreet.code_version import CodeVersion
from discreet.part import from_plain
from discreet.privacy.release import Person, Unit, describe_clients, relations_for
from discreet.privacy.wording import compact, round_down, round_up
from discreet.report.number_format import format_count

EPILOG = """\b
Examples:
  discreet ledger create ledger.jsonl --epsilon 4 --delta 1e-5
  discreet ledger create ledger.jsonl --epsilon 4 --delta 1e-5 \\
      --unit person:patient:20 --view public
  discreet ledger show ledger.jsonl --clients
  discreet ledger verify ledger.jsonl --head HASH --records 31

A ledger belongs to the data. Each run writes to it before it touches the data,
several runs can share it, and it refuses what would exceed its budget.
"""

app = command_group("Create, show and verify the ledger of a privacy budget.", EPILOG)

File: TypeAlias = Annotated[Path, typer.Argument(metavar="PATH", hidden=True)]  # the docstring describes it


@app.command()
def show(
    path: File,
    clients: Annotated[bool, typer.Option("--clients", help="Add a line for each client, by its number.")] = False,
    as_json: Json = False,
) -> None:
    """Show how much of each budget in the ledger PATH is spent."""
    from discreet.privacy.ledger import Ledger

    summary = Ledger.open(path).summary(by_client=clients)
    emit(lambda: summary, lambda: _summary_page(summary), as_json=as_json)


@app.command()
def verify(
    path: File,
    head: Annotated[
        str | None, typer.Option(metavar="H", help="Head of the ledger on a card: it must be in the chain.")
    ] = None,
    records: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Records of the ledger on the same card: at least so many.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Verify that no line of the ledger PATH was changed.

    Every line contains the hash of the line before, so a changed line is detected. Lines missing at the end, or an
    older copy that was put back, are detected only by --head and --records from the last guarantee card.
    """
    from discreet.privacy.ledger import Ledger

    state = Ledger.open(path).verify(head=head, records=records)
    emit(lambda: {"intact": True, **state}, lambda: _describe_chain(state), as_json=as_json)


@app.command()
def create(
    path: File,
    epsilon: Annotated[float, number_option(POSITIVE, "E", "Budget: the largest epsilon that may be spent.")],
    delta: Annotated[float, number_option(PROBABILITY, "D", "Delta of the budget.")],
    unit: UnitOption = "example",
    view: ViewOption = "server",
    relation: Annotated[
        RelationWord | None,
        typer.Option(show_default="zero-out; for clients add-or-remove", help="Which data sets are neighbours."),
    ] = None,
    mode: Annotated[
        Literal["filter", "plan"],
        typer.Option(help="Whether it is for many runs (filter) or for one planned run (plan)."),
    ] = "filter",
    as_json: Json = False,
) -> None:
    """Create a ledger at PATH with a budget.

    A filter allows any number of runs, each planned after seeing the results of the last. A plan is tighter, and
    allows one run, whose rounds and noise are fixed before it starts. The number of examples of a client is public, so
    a budget for examples or persons compares with a blank in their place (zero-out), not with a data set without them.
    """
    from discreet.privacy.ledger import Budget, Ledger

    protected = parse_unit(unit)
    budget = Budget(
        unit=protected,
        relation=relations_for(protected)[0] if relation is None else parse_relation(relation),
        view=parse_view(view),
        epsilon=epsilon,
        delta=delta,
    )
    summary = Ledger.create(path, [budget], mode).summary()
    emit(lambda: summary, lambda: _summary_page(summary), as_json=as_json)


@app.command()
def restate(path: File, as_json: Json = False) -> None:
    """Change an old ledger PATH to zero-out budgets for examples.

    Older versions created add-or-remove budgets for examples and persons, which no release can keep: the number of
    examples of a client is public and divides its noise, so a removed example is visible. What was spent stays spent;
    the change adds one line to the ledger.
    """
    from discreet.privacy.ledger import Ledger

    ledger = Ledger.open(path)
    ledger.restate()
    summary = ledger.summary()
    emit(lambda: summary, lambda: _summary_page(summary), as_json=as_json)


def _summary_page(summary: dict[str, Any]) -> Iterator[RenderableType]:
    purpose = {"filter": "for any number of runs", "plan": "for one planned run"}[summary["mode"]]
    yield f"{summary['path']}: a ledger {purpose}, created {summary['created'][:10]}"
    if own := summary.get("on_word_of"):
        yield f"Not certified: what is spent is only declared, by {' and '.join(own)}. No other run can join it."
    yield ""
    yield Padding(_budget_table(summary["budgets"]), (0, 2))
    yield from _client_tables(summary["budgets"])
    yield ""
    counts = summary["releases"]
    yield (
        f"Releases: {counts['committed']:,} committed, {counts['reserved']:,} reserved (counted as spent), "
        f"{counts['voided']:,} voided."
    )
    if summary["mode"] == "filter":
        yield "The promise is the budget. What is spent so far says what is left of it, and is no promise of its own."
    yield from _describe_chain(summary)


def _budget_table(budgets: list[dict[str, Any]]) -> Table:
    numbers = ("ε spent", "of", "left", "δ")
    table = text_table("protects", "from", "neighbours", *numbers, right=numbers)
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
    name = f"person ({unit.column})" if isinstance(unit, Person) else unit
    if clients is None:
        return name
    return describe_clients(clients) if unit == "client" else f"{name} of {describe_clients(clients)}"


def _client_tables(budgets: list[dict[str, Any]]) -> Iterator[RenderableType]:
    """List what each client has spent of each budget, where the summary has a list by client."""
    for budget in budgets:
        clients = budget.get("by_client")
        if clients is None:
            continue
        yield ""
        if not clients:
            yield "  All clients have spent the same: what the budget's line says."
            continue
        heading = f"each client, at δ {compact(budget['delta'])}, ε {compact(budget['epsilon'])} allowed"
        table = text_table(heading, "ε spent", "left", right=("ε spent", "left"))
        for group in clients:
            table.add_row(describe_clients(group["clients"]), round_up(group["spent"]), round_down(group["remaining"]))
        yield Padding(table, (0, 2))


def _describe_chain(state: dict[str, Any]) -> Iterator[RenderableType]:
    yield f"The hash chain is intact: {format_count(state['records'], 'records')}, head"
    yield f"  {state['head']}"
    for writer in state["code"]:
        code = "an earlier version" if writer["code"] is None else CodeVersion.from_stamp(writer["code"])
        yield f"Written by {code}: {format_count(writer['lines'], 'lines')}."
    if state["recovered"] or state["torn_bytes"]:
        yield "A process died while it wrote a line; the unfinished line was never reported and is ignored."
    for reservation in state["outstanding"]:
        yield f"Outstanding: {reservation['key']} (line {reservation['line']}), until it is committed or voided."
