"""The guarantee card: what is certified about a release, how it was computed, and what it doesn't cover."""

import math
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Self, TypeAlias

from pydantic import Field, PlainSerializer, WrapValidator

from discreet.code_version import CodeVersion, read_code_version
from discreet.errors import InvalidInput, Unsupported
from discreet.part import Flag, Index, NonNegative, Probability, Rate, check_value, part
from discreet.privacy import accountant, gaussian, html_card, text_card, wording
from discreet.privacy.card_lines import Source, distinct_lines, release_assumptions, release_exclusions
from discreet.privacy.dominating_gaussians import replace_unpaired_noise
from discreet.privacy.events import Event
from discreet.privacy.question_checks import check_release
from discreet.privacy.release import Relation, Release, Unit, View
from discreet.privacy.wording import compact, join_names, round_up
from discreet.words import fill

FALSE_ALARMS = (0.001, 0.01, 0.1)  # where the literature on membership inference reports attacks


def _parse_epsilon(value: Any, finite: Callable[[Any], float]) -> float:
    return math.inf if value == "inf" or value == math.inf else finite(value)


# JSON has no infinity, and null could be read as "nothing spent".
Epsilon: TypeAlias = Annotated[
    NonNegative,
    WrapValidator(_parse_epsilon),
    PlainSerializer(lambda x: x if math.isfinite(x) else "inf", when_used="json"),
]


@part
class Claim:
    """An (ε, δ) from elsewhere that isn't certified here, with the reason."""

    epsilon: Epsilon
    delta: NonNegative
    source: str
    reason: str


@part
class Attack:
    """The largest share of units that any attack can recognise at this rate of false alarms."""

    false_positive_rate: Probability
    true_positive_rate: Rate


@part
class SecondValue:
    """The ε of the same event by an independent engine, or the reason why there is none."""

    engine: str
    epsilon: Epsilon | None
    reason: str = ""


@part
class LedgerMark:
    """The ledger's last hash and its number of lines. The chain shows edits; only these two show a cut-off end."""

    head: str
    length: Index


@part
class Guarantee:
    """Nobody with this view learns more than (ε, δ) about one unit from the event, if the assumptions hold.

    Guarantee: `epsilon` is an upper bound, computed by two accountants of this package and, where `second` has a value,
    confirmed by it. The numbers in `claims` are not certified. With `on_word_of` nothing is certified: `epsilon` is
    computed from what a user's own code declares of itself.
    """

    unit: Unit
    relation: Relation
    view: View
    epsilon: Epsilon
    delta: Probability
    event: Event
    accountant: str
    version: str
    commit: str | None = None  # of the code; None if it is not known, as on cards of earlier versions
    dirty: Flag | None = None  # whether files of the code were changed since that commit
    second: SecondValue
    mu: Epsilon
    attacks: Annotated[tuple[Attack, ...], Field(min_length=1)]
    assumptions: tuple[str, ...]
    not_covered: tuple[str, ...]
    claims: tuple[Claim, ...] = ()
    ledger: LedgerMark | None = None
    clients: tuple[Index, ...] | None = None  # the clients whose units are protected; None for any client's
    # a user's own parts that declare what ε is computed from; stored only if there are some
    on_word_of: Annotated[tuple[str, ...], Field(exclude_if=lambda parts: not parts)] = ()
    # stamps of the other code that took part in a run that was resumed; stored only if there are some
    other_code: Annotated[tuple[str, ...], Field(exclude_if=lambda stamps: not stamps)] = ()
    # who vouches for each assumption, and for each exclusion; cards of earlier versions don't say it
    assumption_sources: tuple[Source, ...] = ()
    exclusion_sources: tuple[Source, ...] = ()

    def __post_init__(self) -> None:
        for what, sentences, sources in (
            ("assumption", self.assumptions, self.assumption_sources),
            ("exclusion", self.not_covered, self.exclusion_sources),
        ):
            if sources and len(sources) != len(sentences):
                raise InvalidInput(
                    f"A card must name a source for each {what}: it has {len(sentences)}, and {len(sources)} sources.",
                    fix="Restore the file that holds the card: it was changed.",
                )

    @classmethod
    def certify(
        cls,
        release: Release,
        delta: float,
        *,
        claims: Iterable[Claim] = (),
        assumptions: Iterable[str] = (),
        not_covered: Iterable[str] = (),
        ledger: LedgerMark | None = None,
        in_run: bool = False,
        on_word_of: Iterable[str] = (),
        code_stamps: Iterable[str] = (),
    ) -> Self:
        """Compute the guarantee of a release by every engine.

        Args:
            release: What was released, about which unit, to which view.
            delta: The δ at which ε is certified.
            claims: Numbers from elsewhere that are printed but not certified.
            assumptions: Lines that only the caller can know, added to those that follow from the release.
            not_covered: Further lines on what the guarantee doesn't cover.
            ledger: The ledger's last hash and length, if the release was counted there.
            in_run: Whether a run of this package makes the release. Its caller adds who holds which data and draws the
                noise.
            on_word_of: A user's own parts that declared the release. The card is then not certified.
            code_stamps: Stamps of all code that took part in the run; the card is made by the code that runs now.

        Raises:
            Unsupported: No accountant covers the release.
            EnginesDisagree: Two engines gave values that can't both be right.
        """
        check_release(release)
        delta = check_value("delta", Probability, delta)
        _refuse_what_no_accountant_covers(release)
        code, declared = read_code_version(), tuple(on_word_of)
        made_by: Source = "project" if not in_run else "author" if declared else "program"
        assumed = distinct_lines([*assumptions, *release_assumptions(release, made_by)])
        excluded = distinct_lines([*not_covered, *release_exclusions(release, made_by)])
        account, opinion = accountant.account_with_second_engine(release.event, delta, release.relation)
        return cls(
            unit=release.unit,
            relation=release.relation,
            view=release.view,
            epsilon=account.epsilon,
            delta=delta,
            event=release.event,
            accountant=account.certified_by,
            version=code.version,
            commit=code.commit,
            dirty=code.dirty,
            second=SecondValue(engine=opinion.engine, epsilon=opinion.epsilon, reason=opinion.reason),
            mu=gaussian.equivalent_mu(account.epsilon, delta),
            attacks=best_attacks(release.event, release.relation),
            assumptions=tuple(assumed),
            not_covered=tuple(excluded),
            claims=tuple(claims),
            ledger=ledger,
            clients=release.clients,
            on_word_of=declared,
            other_code=tuple(stamp for stamp in dict.fromkeys(code_stamps) if stamp != code.stamp),
            assumption_sources=tuple(line.source for line in assumed),
            exclusion_sources=tuple(line.source for line in excluded),
        )

    @property
    def is_certified(self) -> bool:
        """Whether ε is certified, and not computed from what a user's own code declares of itself."""
        return not self.on_word_of

    @property
    def is_seeded(self) -> bool:
        """Whether the card says that the noise comes from a seed, which protects nobody."""
        return fill("assumes.seeded") in self.assumptions

    @property
    def is_delta_large(self) -> bool:
        """Whether the card says that δ allows publishing one unit in full."""
        return fill("not_covered.large_delta") in self.not_covered

    @property
    def code(self) -> CodeVersion:
        """The code that made the card."""
        return CodeVersion(self.version, self.commit, self.dirty)

    @property
    def status(self) -> str:
        """What ε is: Certified, or Declared by a user's own code."""
        return fill("label.certified" if self.is_certified else "label.declared")

    def sentence(self) -> str:
        """Return the guarantee in one plain sentence, at the smallest false-alarm rate."""
        worst = self.attacks[0]
        rates = worst.false_positive_rate, worst.true_positive_rate
        bound = wording.sentence(self.view, self.unit, self.relation, *rates)
        if self.is_certified:
            return bound
        return fill("card.on_word_of", parts=join_names(self.on_word_of), sentence=bound)

    def __str__(self) -> str:
        return self.as_text()

    def _repr_html_(self) -> str:
        """Return the card for notebooks."""
        return html_card.html_card(self, card_entries(self))

    def as_text(self) -> str:
        """Return the card as plain text of at most 80 columns."""
        return "\n".join(line.rstrip() for line in text_card.card_lines(self, card_entries(self)))


def best_attacks(event: Event, relation: Relation, rates: Iterable[float] = FALSE_ALARMS) -> tuple[Attack, ...]:
    """Return what the best possible attack achieves at each of these false-alarm rates."""
    return tuple(
        Attack(false_positive_rate=rate, true_positive_rate=accountant.true_positive_rate(event, rate, relation))
        for rate in rates
    )


def split_by_largest_epsilon(cards: Iterable[Guarantee]) -> tuple[list[Guarantee], list[Guarantee]]:
    """Split cards into those to print and the rest.

    Of cards that differ only in the clients they protect, the one with the largest ε is printed. Both lists keep the
    order of the cards.
    """
    listed = list(cards)
    largest: dict[tuple[Unit, View], Guarantee] = {}
    for card in listed:
        current = largest.setdefault((card.unit, card.view), card)
        if card.clients is not None and card.epsilon > current.epsilon:
            largest[card.unit, card.view] = card
    printed = [card for card in listed if card.clients is None or card is largest[card.unit, card.view]]
    return printed, [card for card in listed if all(card is not other for other in printed)]


def card_entries(card: Guarantee) -> list[tuple[str, str]]:
    """Return the labelled entries of a card, for text, terminal and web page alike."""
    return [
        (card.status, fill("card.bound", epsilon=round_up(card.epsilon), delta=compact(card.delta))),
        (fill("label.unit"), wording.describe_unit(card.unit, card.view, card.clients)),
        (fill("label.neighbours"), wording.describe_relation(card.relation, card.unit)),
        (fill("label.observer"), fill(f"view.{card.view}")),
        (fill("label.mechanism"), wording.describe_event(card.event)),
        (fill("label.accountant"), _describe_accountant(card)),
        (fill("label.second"), _describe_second(card.second)),
        (fill("label.mu"), fill("card.mu", mu=round_up(card.mu))),
        (fill("label.code"), _describe_code(card)),
    ]


def _describe_accountant(card: Guarantee) -> str:
    """Describe one of our accountants; a card of another version may name one that is not known here."""
    name = card.accountant
    if name == "pld" and replace_unpaired_noise(card.event, card.relation) != card.event:
        return fill("accountant.pld_of_gaussian")
    return fill(f"accountant.{name}") if name in ("pld", "rdp", "basic", "filter") else name


def _describe_second(second: SecondValue) -> str:
    if second.epsilon is None:
        return fill("second.none", reason=second.reason)
    value = {"engine": second.engine, "epsilon": round_up(second.epsilon)}
    return fill("second.remark", reason=second.reason, **value) if second.reason else fill("second.value", **value)


def _describe_code(card: Guarantee) -> str:
    """Name the code that made the card, and the code of earlier sessions of a run that was resumed."""
    code = fill("code.no_commit", code=str(card.code)) if card.dirty else str(card.code)
    others = [str(CodeVersion.from_stamp(stamp)) for stamp in card.other_code]
    return fill("code.resumed", code=code, others="; ".join(others)) if others else code


def _refuse_what_no_accountant_covers(release: Release) -> None:
    if release.adaptive:
        raise Unsupported(
            "This event's price was chosen after looking at earlier releases, which no accountant here covers.",
            fix="Quote the ledger's total: its filter holds for adaptive plans.",
        )
