"""Check every card under a path, and that the ledger of a run agrees with it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.verify.card_check import Verdict, Word, check_card
from discreet.verify.card_reader import Card, read_cards
from discreet.verify.ledger_check import check_ledger

CARDS, LEDGER, IDENTITY = "guarantee.json", "ledger.jsonl", "run.json"
EXIT_CODES: dict[Word, int] = {"proved": 0, "refuted": 4, "unknown": 5}


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
    except (OSError, ValueError, TypeError, RecursionError):
        identity = {}
    shared, run = identity.get("ledger"), identity.get("id")
    ledger = Path(str(identity.get("folder"))) / str(shared) if shared else folder / LEDGER
    cards = read_cards(path / CARDS if path.is_dir() else path)
    return [CheckedCard(card, check_card(card), *check_ledger(card, ledger, run, bool(shared))) for card in cards]


def overall(checked: list[CheckedCard]) -> Word:
    """Return the verdict on all cards together: the worst one."""
    return max((each.word for each in checked), key=("proved", "unknown", "refuted").index)


def as_data(checked: list[CheckedCard]) -> dict[str, Any]:
    """Return the answer as plain data: that of the first card with the worst verdict, and all of them in `cards`."""
    cards = [
        {
            "verdict": each.word,
            "reason": each.reason,
            "epsilon": each.card.epsilon if each.card.epsilon < float("inf") else "inf",
            "delta": each.card.delta,
            "delta_enclosure": [each.verdict.enclosure.low, each.verdict.enclosure.high],
            **{name: each.card.data.get(name) for name in ("relation", "unit", "view")},
            "declared_by": each.card.data.get("on_word_of", []),
            "seeded": each.card.data.get("seeded", False),
            "direction": each.verdict.direction,
            "pairs": list(each.verdict.pairs),
            "ledger": {"state": each.ledger, "reason": each.ledger_reason},
            "seconds": round(each.verdict.seconds, 3),
        }
        for each in checked
    ]
    return {**next(data for data in cards if data["verdict"] == overall(checked)), "cards": cards}
