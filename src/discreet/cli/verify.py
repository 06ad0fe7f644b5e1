"""`discreet verify`: prove or refute the ε of cards by ball arithmetic, without the accountants."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import RenderableType
from rich.padding import Padding

from discreet.cli.output import Json, emit
from discreet.cli.text_table import text_table
from discreet.errors import InvalidInput
from discreet.extras import import_library
from discreet.privacy.wording import compact, round_down, round_up

if TYPE_CHECKING:
    from discreet.verify.composition import Enclosure
    from discreet.verify.path_check import CheckedCard

EPILOG = """\b
Examples:
  discreet verify runs/first
  discreet verify card.json --json

\b
Exit codes: 0 every card is proved; 4 a card is refuted, or its ledger
contradicts it; 5 it can't be told; 2 no card could be read.
"""


def verify(
    path: Annotated[Path, typer.Argument(metavar="CARD|RUN", hidden=True)],
    as_json: Json = False,
) -> None:
    """Prove or refute the epsilon of a card or a run.

    CARD is a JSON file: guarantee.json of a run, or what `discreet account ... --card --json` printed. RUN is a run
    directory; its ledger's hash chain, head, length and events are compared with the cards.

    The checker encloses delta at the card's epsilon by ball arithmetic, in both directions, and shares no code with
    the accountants. It needs the extra [verify].
    """
    import_library("flint", "discreet verify")
    from discreet.verify.card_reader import UnreadableCard
    from discreet.verify.path_check import EXIT_CODES, as_data, check_path, overall

    if (path / "run.json").is_file() and not (path / "guarantee.json").is_file():
        raise InvalidInput(f"{path} is a run that has not finished, so it has no card yet.", fix="Resume it first.")
    try:
        checked = check_path(path)
    except UnreadableCard as problem:
        raise InvalidInput(str(problem), fix="Name a run with a guarantee, or a file with a card.") from None
    emit(lambda: as_data(checked), lambda: _page(checked), as_json=as_json)
    raise typer.Exit(EXIT_CODES[overall(checked)])


def _page(checked: "list[CheckedCard]") -> Iterator[RenderableType]:
    for each in checked:
        card, verdict = each.card, each.verdict
        epsilon = round_down(card.epsilon, 6) if verdict.word == "refuted" else round_up(card.epsilon)
        yield f"{each.word.capitalize()}: ε = {epsilon} at δ = {compact(card.delta)}"
        unit, view = _describe_unit(card.data["unit"]), card.data["view"]
        rows = [
            ("Reason", each.reason),
            ("δ(ε)", _describe_enclosure(verdict.enclosure)),
            ("About", f"unit {unit}, view {view}, neighbours {card.relation}"),
            ("Direction", verdict.direction),
            *(("Pair", name) for name in verdict.pairs),
            ("Ledger", each.ledger_reason),
            ("Time", f"{verdict.seconds:.2f} s"),
        ]
        if card.data.get("seeded"):
            rows.insert(0, ("Seeded", "This run protects nobody: whoever knows its seed can remove the noise."))
        if card.data.get("on_word_of"):
            rows.append(("Declared", "The event is what a user's own code says of itself; nobody can prove that."))
        table = text_table("", "")
        for label, text in rows:
            if text:
                table.add_row(label, text)
        yield Padding(table, (0, 2))


def _describe_enclosure(found: "Enclosure") -> str:
    if (found.low, found.high) == (0.0, 1.0):
        return ""  # nothing is known
    return f"between {round_down(found.low, 6)} and {round_up(found.high, 6)}"


def _describe_unit(unit: str | Mapping[str, Any]) -> str:
    if isinstance(unit, str):
        return unit
    rows = f"person ({unit['column']}), at most {unit['at_most']} rows"
    clients = unit.get("clients_at_most", 1)
    return rows if clients == 1 else f"{rows} at each of at most {clients} clients"
