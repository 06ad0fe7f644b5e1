"""A guarantee card as plain text of at most 80 columns."""

import textwrap
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from discreet.privacy.card_lines import group_lines
from discreet.privacy.wording import compact, per_thousand, round_up
from discreet.words import fill

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Claim, Guarantee

WIDTH = 80


def card_lines(card: "Guarantee", entries: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield the lines of a card, with these labelled entries in the middle."""
    yield fill("card.title" if card.is_certified else "card.title_declared")
    yield "─" * WIDTH
    if card.is_seeded:
        yield from (*_paragraph(fill("card.seeded")), "")
    yield from _paragraph(card.sentence())
    yield ""
    yield _attack_line(fill("attack.false_alarms"), fill("attack.recognised"), fill("attack.guessing"))
    for attack in card.attacks:
        rates = attack.false_positive_rate, attack.true_positive_rate
        alarms, recognised = (fill("attack.per_thousand", number=per_thousand(rate)) for rate in rates)
        yield _attack_line(alarms, recognised, alarms)
    yield ""
    for label, text in entries:
        yield from _entry(label, text)
    if card.ledger:
        text = fill("card.ledger", entries=f"{card.ledger.length:,}", head=card.ledger.head)
        yield from _entry(fill("label.ledger"), text)
    if card.claims:
        yield from ("", fill("label.claims"))
    for claim in card.claims:
        yield from _item(_describe_claim(card, claim))
    for title, items in (
        *group_lines("assumes", card.assumptions, card.assumption_sources),
        *group_lines("not_covered", card.not_covered, card.exclusion_sources),
    ):
        yield from ("", title)
        for item in items:
            yield from _item(item)


def _describe_claim(card: "Guarantee", claim: "Claim") -> str:
    return fill(
        "claim.certified" if card.is_certified else "claim.declared",
        epsilon=compact(claim.epsilon),
        delta=compact(claim.delta),
        source=claim.source,
        reason=claim.reason.rstrip("."),
        bound=round_up(card.epsilon),
    )


def _attack_line(alarms: str, recognised: str, guessing: str) -> str:
    """Return a line of the table of attacks; words that are too long for their column move the next one."""
    return f"  {alarms:<18}  {recognised:<22}  {guessing}"


def _entry(label: str, text: str) -> list[str]:
    return _paragraph(text, f"{label:<14}  ", " " * 16)


def _item(text: str) -> list[str]:
    return _paragraph(text, "  · ", "    ")


def _paragraph(text: str, first: str = "", rest: str = "") -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
