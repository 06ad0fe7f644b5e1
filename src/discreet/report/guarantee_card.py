"""A guarantee as a card on a page: what is certified, whom it protects from whom, and what it doesn't say."""

import math
import re
from collections.abc import Sequence

from discreet.privacy import wording
from discreet.privacy.guarantee import Claim, Guarantee, card_entries
from discreet.privacy.wording import compact, per_thousand, round_up
from discreet.report.markup import Html, bullet_list, definition_list, details, table, tag

# Not the digits of a name, as in CIFAR-10 or net2.py; in doubt it is a number.
NUMBER = re.compile(r"\b[0-9a-f]{64}\b|(?<!\w)(?<![^\W\d]-)[-−]?\d+(?:[.,]\d+)*(?:e[-+]?\d+)?")  # a sha256 is one
MEANING = (
    "ε (epsilon) bounds how much more likely any outcome becomes because one {unit} was used: by a factor of at most "
    "e to the ε. Smaller is more private. δ (delta) is a small probability that this bound leaves aside. "
    "A guarantee is always about one kind of unit and one kind of onlooker, and says nothing about others."
)


def guarantee_card(card: Guarantee, *, public: bool = False) -> Html:
    """The whole card; what is only claimed stands in a box of its own.

    In public, what the card says of numbers that it doesn't cover is said without those numbers.
    """
    unit = wording.unit_name(card.unit)
    not_covered = [remove_numbers(each) for each in card.not_covered] if public else card.not_covered
    return tag(
        "article",
        tag("h3", f"For any one {unit}, against {_onlooker(card)}"),
        tag("p", card.sentence(), class_="lead"),
        _attack_table(card),
        definition_list(_card_entries(card)),
        _claims_box(card) if card.claims else None,
        tag(
            "div",
            tag("section", tag("h4", "It assumes"), bullet_list(card.assumptions)) if card.assumptions else None,
            tag("section", tag("h4", "It does not cover"), bullet_list(not_covered)) if not_covered else None,
            class_="pair",
        ),
        details("What ε and δ mean", tag("p", MEANING.format(unit=unit))),
        class_="card",
    )


def other_clients_table(cards: Sequence[Guarantee]) -> Html:
    """The guarantees of clients whose numbers are their own, a row each; the least protected has a card."""
    return table(
        "The same for other clients, whose numbers differ",
        ["whose", "ε, at most", "what happened"],
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
    return format_bound(round_up(card.epsilon), card.delta)


def format_bound(epsilon: str, delta: float) -> str:
    return _format_equations(f"ε = {epsilon} at δ = {compact(delta)}")


def remove_numbers(sentence: str) -> str:
    """The sentence with … for each of its numbers; one that states an ε speaks of a guarantee, and keeps them."""
    return sentence if "ε = " in sentence else NUMBER.sub("…", sentence)


def _onlooker(card: Guarantee) -> str:
    return {"server": "the server", "client": "another client", "public": "the public"}[card.view]


def _attack_table(card: Guarantee) -> Html:
    pairs = ((per_thousand(each.false_positive_rate), per_thousand(each.true_positive_rate)) for each in card.attacks)
    return table(
        "What the best possible attack achieves, out of 1,000",
        ["allowed false alarms", "recognised, at most", "by blind guessing"],
        ([alarms, found, alarms] for alarms, found in pairs),
    )


def _card_entries(card: Guarantee) -> list[tuple[str, str]]:
    listed = [(name, _format_equations(said)) for name, said in card_entries(card)]
    return [*listed, ("Made with", f"discreet {card.version}")]


def _claims_box(card: Guarantee) -> Html:
    return tag(
        "aside",
        tag("h4", "Claimed, not certified"),
        bullet_list(_describe_claim(claim) for claim in card.claims),
        tag("p", f"Certified is {format_certified(card)}."),
        class_="claims",
    )


def _describe_claim(claim: Claim) -> str:
    return f"{format_bound(compact(claim.epsilon), claim.delta)}, {claim.source}: {claim.reason}"


def _format_equations(said: str) -> str:
    """ε = 2 in words that no line break takes apart, and infinity by its sign."""
    return said.replace(" = inf", " = ∞").replace(" = ", "\u00a0=\u00a0")
