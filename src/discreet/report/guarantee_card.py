"""A guarantee as a card in HTML: what is certified, whom it protects from whom, and what it does not cover."""

import math
import re
from collections.abc import Sequence
from typing import get_args

from discreet.privacy import wording
from discreet.privacy.card_lines import Kind, Source, group_lines
from discreet.privacy.guarantee import Claim, Guarantee, card_entries
from discreet.privacy.release import View
from discreet.privacy.wording import compact, per_thousand, round_up
from discreet.report.markup import Html, bullet_list, definition_list, details, table, tag
from discreet.words import fill

# Matches numbers and sha256 hashes, but not the digits of a name, as in CIFAR-10 or net2.py.
NUMBER = re.compile(r"\b[0-9a-f]{64}\b|(?<!\w)(?<![^\W\d]-)[-−]?\d+(?:[.,]\d+)*(?:e[-+]?\d+)?")


def guarantee_card(card: Guarantee, *, public: bool = False) -> Html:
    """Return the whole card; claims that are not certified are in a box of their own.

    Args:
        card: The guarantee.
        public: Remove the numbers from the sentences about what the guarantee does not cover.
    """
    unit = wording.unit_name(card.unit)
    not_covered = [remove_numbers(sentence) for sentence in card.not_covered] if public else card.not_covered
    return tag(
        "article",
        tag("h3", fill(f"heading.{unit}", against=describe_onlooker(card.view))),
        tag("p", fill("card.seeded"), class_="lead") if card.is_seeded else None,
        tag("p", card.sentence(), class_="lead"),
        _attack_table(card),
        definition_list(_card_entries(card)),
        _claims_box(card) if card.claims else None,
        tag(
            "div",
            _line_groups("assumes", card.assumptions, card.assumption_sources),
            _line_groups("not_covered", not_covered, card.exclusion_sources),
            class_="pair",
        ),
        details(fill("page.meaning"), tag("p", f"{fill(f'meaning.{unit}')} {fill('meaning.rest')}")),
        class_="card",
    )


def _line_groups(kind: Kind, sentences: Sequence[str], sources: Sequence[Source]) -> Html | None:
    """Return the assumptions, or what is not covered, in groups by who vouches for them."""
    groups = group_lines(kind, sentences, sources)
    sections = (tag("section", tag("h4", title), bullet_list(lines)) for title, lines in groups)
    return tag("div", *sections) if groups else None


def other_clients_table(cards: Sequence[Guarantee]) -> Html:
    """List the guarantees of clients with numbers of their own; the least protected client has the card."""
    return table(
        fill("page.other_clients"),
        [fill("page.client"), fill("page.epsilon"), fill("page.mechanism")],
        (
            [
                wording.describe_unit(card.unit, card.view, card.clients),
                "∞" if math.isinf(card.epsilon) else round_up(card.epsilon),
                wording.describe_event(card.event),
            ]
            for card in cards
        ),
    )


def format_certified(card: Guarantee) -> str:
    """Write a card's bound, rounded up: ε = 2 at δ = 1e-5."""
    return format_bound(round_up(card.epsilon), card.delta)


def format_bound(epsilon: str, delta: float) -> str:
    """Write ε at δ, so that no line break separates a name from its number."""
    return _format_equations(fill("card.bound", epsilon=epsilon, delta=compact(delta)))


def remove_numbers(sentence: str) -> str:
    """Replace each number of a sentence by …; a sentence that states an ε is about a guarantee, and keeps them."""
    return sentence if "ε = " in sentence else NUMBER.sub("…", sentence)


def describe_onlooker(view: str) -> str:
    """Say against whom a guarantee protects. A promise may name an onlooker who is not known here."""
    return fill(f"against.{view}") if view in get_args(View) else fill("against.other", view=view)


def _attack_table(card: Guarantee) -> Html:
    pairs = (
        (per_thousand(attack.false_positive_rate), per_thousand(attack.true_positive_rate)) for attack in card.attacks
    )
    return table(
        fill("attack.title"),
        [fill("attack.allowed_alarms"), fill("attack.recognised"), fill("attack.guessing")],
        ([alarms, recognised, alarms] for alarms, recognised in pairs),
    )


def _card_entries(card: Guarantee) -> list[tuple[str, str]]:
    return [(name, _format_equations(text)) for name, text in card_entries(card)]


def _claims_box(card: Guarantee) -> Html:
    certified = format_certified(card)
    return tag(
        "aside",
        tag("h4", fill("label.claims")),
        bullet_list(map(_describe_claim, card.claims)),
        tag("p", fill("claim.what_is_certified" if card.is_certified else "claim.what_is_declared", bound=certified)),
        class_="claims",
    )


def _describe_claim(claim: Claim) -> str:
    bound = format_bound(compact(claim.epsilon), claim.delta)
    return fill("claim.on_page", bound=bound, source=claim.source, reason=claim.reason)


def _format_equations(text: str) -> str:
    """Keep equations such as ε = 2 on one line, and write infinity as ∞."""
    return text.replace(" = inf", " = ∞").replace(" = ", "\u00a0=\u00a0")
