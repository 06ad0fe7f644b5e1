"""A guarantee as a card on a page: what is certified, whom it protects from whom, and what it doesn't say."""

from discreet.privacy import wording
from discreet.privacy.guarantee import Claim, Guarantee, SecondValue
from discreet.privacy.wording import brief, in_a_thousand, rounded_up
from discreet.report.markup import Html, folded, listing, table, tag, terms

COUNTED_BY = {"pld": "the privacy-loss distribution (pld)", "rdp": "Rényi divergences (rdp)"}
MEANING = (
    "ε (epsilon) bounds how much more likely any outcome becomes because one {unit} was used: by a factor of at most "
    "e to the ε. Smaller is more private. δ (delta) is a small probability that this bound leaves aside. "
    "A guarantee is always about one kind of unit and one kind of onlooker, and says nothing about others."
)


def guarantee_card(card: Guarantee) -> Html:
    """The whole card; what is only claimed stands in a box of its own."""
    unit = wording.name_of(card.unit)
    return tag(
        "article",
        tag("h3", f"For any one {unit}, against {_onlooker(card)}"),
        tag("p", card.sentence(), class_="lead"),
        _attacks(card),
        terms(_entries(card)),
        _claims(card) if card.claims else None,
        tag(
            "div",
            tag("section", tag("h4", "It assumes"), listing(card.assumptions)) if card.assumptions else None,
            tag("section", tag("h4", "It does not cover"), listing(card.not_covered)) if card.not_covered else None,
            class_="pair",
        ),
        folded("What ε and δ mean", tag("p", MEANING.format(unit=unit))),
        class_="card",
    )


def certified(card: Guarantee) -> str:
    return bound(rounded_up(card.epsilon), card.delta)


def bound(epsilon: str, delta: float) -> str:
    """(ε, δ) in words that no line break takes apart."""
    return f"ε\u00a0=\u00a0{_infinite(epsilon)} at δ\u00a0=\u00a0{brief(delta)}"


def _onlooker(card: Guarantee) -> str:
    return {"server": "the server", "client": "another client", "public": "the public"}[card.view]


def _attacks(card: Guarantee) -> Html:
    pairs = ((in_a_thousand(each.false_positive_rate), in_a_thousand(each.true_positive_rate)) for each in card.attacks)
    return table(
        "What the best possible attack achieves, out of 1,000",
        ["allowed false alarms", "recognised, at most", "by blind guessing"],
        ([alarms, found, alarms] for alarms, found in pairs),
    )


def _entries(card: Guarantee) -> list[tuple[str, str]]:
    return [
        ("Certified", certified(card)),
        ("Unit", wording.unit_in_full(card.unit, card.view)),
        ("Neighbours", wording.RELATIONS[card.relation].format(unit=wording.name_of(card.unit))),
        ("Who looks", wording.VIEWS[card.view]),
        ("What happened", wording.described(card.event)),
        ("Counted by", f"{COUNTED_BY.get(card.accountant, card.accountant)}, discreet {card.version}"),
        ("Confirmed by", _second(card.second)),
        ("As Gaussian DP", f"μ = {_infinite(rounded_up(card.mu))}, the same (ε, δ) on another scale: no bound"),
    ]


def _claims(card: Guarantee) -> Html:
    return tag(
        "aside",
        tag("h4", "Claimed, not certified"),
        listing(_claimed(claim) for claim in card.claims),
        tag("p", f"Certified is {certified(card)}."),
        class_="claims",
    )


def _claimed(claim: Claim) -> str:
    return f"{bound(brief(claim.epsilon), claim.delta)}, {claim.source}: {claim.reason}"


def _second(second: SecondValue) -> str:
    if second.epsilon is None:
        return f"no second engine: {second.reason}"
    said = f"{second.engine}: ε = {_infinite(rounded_up(second.epsilon))}"
    return said + (f" ({second.reason})" if second.reason else "")


def _infinite(said: str) -> str:
    return "∞" if said == "inf" else said
