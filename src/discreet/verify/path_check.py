"""Check every card under a path, and that the ledger of a run agrees: its hash chain, head, length and events."""

import hashlib
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.verify.card_check import Verdict, Word, check_card
from discreet.verify.card_reader import Card, Step, UnknownEvent, UnreadableCard, count_steps, read_cards

CARDS, LEDGER, IDENTITY = "guarantee.json", "ledger.jsonl", "run.json"
EXIT_CODES: dict[Word, int] = {"proved": 0, "refuted": 4, "unknown": 5}
HASH_BYTES = 75  # ,"hash":"…"} with 64 hexadecimal digits


@dataclass(frozen=True)
class CheckedCard:
    """A card, the verdict on its ε, and what the ledger says: `agrees`, `contradicts`, `unknown` or `none`."""

    card: Card
    verdict: Verdict
    ledger: str
    ledger_reason: str

    @property
    def word(self) -> Word:
        """The verdict on all that the card states: a ledger that contradicts it refutes it."""
        if self.ledger == "contradicts":
            return "refuted"
        return "unknown" if self.ledger == "unknown" and self.verdict.word == "proved" else self.verdict.word

    @property
    def reason(self) -> str:
        """Why this is the verdict."""
        return self.verdict.reason if self.word == self.verdict.word else self.ledger_reason


def check_path(path: Path) -> list[CheckedCard]:
    """Check all cards of a file or a run directory, or raise UnreadableCard."""
    folder = path if path.is_dir() else path.parent
    try:
        identity = dict(json.loads((folder / IDENTITY).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        identity = {}
    shared = identity.get("ledger")
    ledger = Path(str(identity.get("folder"))) / str(shared) if shared else folder / LEDGER
    cards = read_cards(path / CARDS if path.is_dir() else path)
    return [CheckedCard(card, check_card(card), *check_ledger(card, ledger, identity.get("id"))) for card in cards]


def overall(checked: list[CheckedCard]) -> Word:
    """Return the verdict on all cards together: the worst one."""
    words = {each.word for each in checked}
    return "refuted" if "refuted" in words else "unknown" if "unknown" in words else "proved"


def as_data(checked: list[CheckedCard]) -> dict[str, Any]:
    """Return the answer as plain data: that of the first card with the worst verdict, and all of them in `cards`."""
    cards = [
        {
            "verdict": each.word,
            "reason": each.reason,
            "epsilon": each.card.epsilon if each.card.epsilon < float("inf") else "inf",
            "delta": each.card.delta,
            "delta_enclosure": [each.verdict.enclosure.low, each.verdict.enclosure.high],
            "relation": each.card.relation,
            "unit": each.card.data.get("unit"),
            "view": each.card.data.get("view"),
            "declared_by": each.card.data.get("on_word_of", []),
            "direction": each.verdict.direction,
            "pairs": list(each.verdict.pairs),
            "ledger": {"state": each.ledger, "reason": each.ledger_reason},
            "seconds": round(each.verdict.seconds, 3),
        }
        for each in checked
    ]
    return {**next(data for data in cards if data["verdict"] == overall(checked)), "cards": cards}


def check_ledger(card: Card, path: Path, run: str | None) -> tuple[str, str]:
    """Compare a card with a ledger, in which the run names its reservations by its identity `run`."""
    mark = card.data.get("ledger")
    if not isinstance(mark, dict):
        return "none", "The card names no ledger."
    if not path.is_file():
        return "unknown", f"The card names a ledger, and {path} is not there."
    length, head = mark.get("length"), mark.get("head")
    try:
        records = read_chain(path.read_bytes())
    except ValueError as broken:
        return "contradicts", str(broken)
    if not isinstance(length, int) or not 0 < length <= len(records):
        return "contradicts", f"The card counts {length} lines, and the ledger has {len(records)}."
    if records[length - 1]["hash"] != head:
        return "contradicts", f"Line {length} of the ledger has another hash than the card names."
    intact = f"The chain of {len(records)} lines is intact and has the card's head at line {length}"
    try:
        listed, counted = _released_steps(records[:length], card, run), count_steps(card.event)
    except (UnknownEvent, UnreadableCard) as problem:
        return "agrees", f"{intact}; its events were not compared: {problem}"
    if more := sum((listed - counted).values()):
        return "unknown", f"{intact}, but counts {more} steps that are not in the card's event."
    same = "the same steps" if listed == counted else "no step that is not on the card"
    return "agrees", f"{intact}, and counts {same}."


def read_chain(content: bytes) -> list[dict[str, Any]]:
    """Return the records of a ledger, each with the hash of its line's bytes, or raise ValueError at a broken line.

    A last line without an end was never reported to anyone, and is left out.
    """
    records: list[dict[str, Any]] = []
    *lines, last = content.split(b"\n")
    for number, line in enumerate([*lines, last] if b',"hash":"' in last[-HASH_BYTES:] else lines, start=1):
        payload = line[:-HASH_BYTES] + b"}"
        digest = hashlib.sha256(payload).hexdigest()
        if line[-HASH_BYTES:] != f',"hash":"{digest}"}}'.encode():
            raise ValueError(f"Line {number} of the ledger does not match its hash.")
        record = json.loads(payload)
        if (record.get("seq"), record.get("prev")) != (number - 1, records[-1]["hash"] if records else "0" * 64):
            raise ValueError(f"Line {number} of the ledger does not follow the one before.")
        records.append({**record, "hash": digest})
    return records


def _released_steps(records: list[dict[str, Any]], card: Card, run: str | None) -> Counter[Step]:
    """Return the steps counted for the card's unit and view, or raise UnknownEvent where clients differ."""
    reserved: dict[int, list[dict[str, Any]]] = {}
    for record in records:
        match record:
            case {"type": "reserve", "seq": seq, "key": str() as key, "releases": list() as releases}:
                reserved |= {seq: releases} if run is None or key.startswith(f"run {run} ") else {}
            case {"type": "commit", "ticket": ticket, "releases": list() as releases} if ticket in reserved:
                reserved[ticket] = releases
            case {"type": "void", "ticket": ticket}:
                reserved.pop(ticket, None)
    releases = [release for listed in reserved.values() for release in listed]
    if card.data.get("clients") is not None or any(release.get("clients") is not None for release in releases):
        raise UnknownEvent("clients have releases of their own.")
    who = (card.data.get("unit"), card.data.get("view"))
    seen = [count_steps(each.get("event")) for each in releases if (each.get("unit"), each.get("view")) == who]
    views = {each.get("view") for each in releases if each.get("unit") == "example"}
    if not seen and isinstance(card.data.get("unit"), dict) and card.data.get("view") in views:
        raise UnknownEvent("the ledger lists releases of single examples, from which the price of a person follows.")
    if not seen:
        raise UnknownEvent("the ledger names no release of the card's unit and view.")
    return sum(seen, Counter())
