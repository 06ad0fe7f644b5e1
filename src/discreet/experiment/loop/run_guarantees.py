"""The guarantees of a run, each with its assumptions and with what it does not cover."""

import textwrap
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.algorithms import claims
from discreet.algorithms.declarations import trusted_parts
from discreet.experiment.loop.run_assumptions import CountedRounds, release_lines, run_assumptions
from discreet.experiment.loop.sum_odds import run_odds
from discreet.experiment.metrics import list_metrics
from discreet.experiment.promise import person_bound, run_spending
from discreet.experiment.promise.promise import client_groups
from discreet.experiment.promise.promise_warnings import StatedPromise, delta_warnings, is_delta_large
from discreet.experiment.promise.released_rounds import ReleasedRound
from discreet.experiment.terms import Terms
from discreet.part import from_plain, to_plain
from discreet.privacy import accountant
from discreet.privacy.card_lines import Line, as_line
from discreet.privacy.guarantee import Claim, Guarantee, LedgerMark, split_by_largest_epsilon
from discreet.privacy.ledger import Ledger
from discreet.privacy.release import Release, Unit
from discreet.privacy.text_card import WIDTH
from discreet.privacy.wording import compact, describe_event, describe_unit, round_up, unit_name
from discreet.words import fill

if TYPE_CHECKING:
    from discreet.experiment.job import Job


@dataclass(frozen=True)
class SearchTerms:
    """What a search adds to the cards of the trial that it releases.

    Attributes:
        releases: What the whole search reveals, instead of what the trial reveals.
        assumptions: Further assumptions.
        claims: Numbers that leave out the search, which are printed but not certified.
    """

    releases: tuple[Release, ...]
    assumptions: tuple[Line, ...]
    claims: tuple[Claim, ...] = ()


def name_search(line: Line) -> Line:
    """Return a line of a trial's card as the card of the whole search has it."""
    changed = {
        fill("assumes.this_run"): fill("assumes.this_search"),
        fill("not_covered.tuning"): fill("not_covered.tuning_beyond"),
    }
    return Line(changed.get(str(line), str(line)), line.source)


def trial_assumptions(terms: Terms, releases: Sequence[Release], odds: Sequence[Line], *, shared: bool) -> list[Line]:
    """List what the price of one trial of a search assumes, also if another trial is the one that is released.

    Args:
        terms: The trial.
        releases: What the card of the search is about.
        odds: How likely the sums of all trials fail.
        shared: Whether other runs use the same ledger.
    """
    own = [line for release in releases for line in release_lines(terms, terms.algorithm, release)]
    whole = run_assumptions(terms, CountedRounds(terms.rounds, terms.rounds, None, (), shared), odds)
    return [name_search(line) for line in (*own, *whole)]


def certify_run(
    terms: Terms,
    completed: int,
    ledger: Ledger | None,
    *,
    shared: bool,
    released: Sequence[ReleasedRound] | None = None,
    metrics: Collection[str] | None = None,
    code_stamps: Collection[str] = (),
    is_stop_chosen: bool = False,
    search: SearchTerms | None = None,
    odds: Sequence[Line] | None = None,
) -> list[Guarantee]:
    """Certify every guarantee of the first `completed` rounds, the promised one first.

    Args:
        ledger: The ledger of the run, whose head the cards quote. None before a run.
        shared: Whether other runs use the same ledger.
        released: The rounds that took place. None certifies the plan.
        metrics: The names of the metrics that were evaluated on test examples. None for those that will be.
        code_stamps: Stamps of the code that took part in the run so far.
        is_stop_chosen: Whether someone who saw the rounds decided that no more follow. What they saw may be the reason,
            so all rounds of the plan are counted: the rounds that were left out count as planned.
        search: What a search adds, if the run is the trial that it releases.
        odds: How likely the sums of all trials of a search fail. None for a run that is no trial, which has its own.
    """
    counted = terms.rounds if is_stop_chosen else completed
    if is_stop_chosen and released is not None:
        released = [*released, *(ReleasedRound(round, None) for round in range(completed, terms.rounds))]
    state = None if ledger is None else ledger.summary()
    mark = None if state is None else LedgerMark(head=state["head"], length=state["records"])
    delta = terms.privacy.delta if terms.privacy else run_spending.DEFAULT_DELTA
    others = () if terms.deployment is None else terms.deployment.other_runs()
    failing = run_odds(terms, counted) if odds is None else odds
    cards, assumed = [], run_assumptions(terms, CountedRounds(completed, counted, released, others, shared), failing)
    if search is not None:
        assumed = [*(name_search(line) for line in assumed), *search.assumptions]
    evaluated = terms.metric_names if metrics is None else metrics
    uncovered = list(_uncovered_lines(terms, state["budgets"] if state and shared else [], others, evaluated))
    if is_stop_chosen:
        uncovered.append(Line(fill("not_covered.chosen_stop", completed=completed, rounds=terms.rounds)))
    for kind in client_groups(terms.algorithm, terms.privacy, terms.population):
        joined = run_spending.rounds_joined(kind, counted, terms.round_limits)
        happened = run_spending.first_rounds(released, joined)
        claimed = joined if happened is None else len(happened)
        stated = claims.paper_claims(kind.algorithm, claimed, terms.population) if claimed else []
        alone = run_spending.certifiable_releases(kind, joined, terms.population, happened)
        for release in alone if search is None else search.releases:
            certified = Guarantee.certify(
                release,
                delta,
                assumptions=list(dict.fromkeys([*release_lines(terms, kind.algorithm, release), *assumed])),
                not_covered=[*large_delta_line(terms, release.unit, delta), *uncovered],
                claims=[
                    *(_certify_claim(claim, delta) for claim in stated if claim.release.unit == release.unit),
                    *(() if search is None else search.claims),
                ],
                ledger=mark,
                in_run=True,
                on_word_of=[own.title for own in trusted_parts(terms.algorithm)],
                code_stamps=code_stamps,
            )
            cards.append(certified)
    promised = None if terms.privacy is None else (terms.privacy.unit, terms.privacy.against)
    differ = any(card.clients is not None for card in cards)
    return sorted(cards, key=lambda card: ((card.unit, card.view) != promised, -card.epsilon)) if differ else cards


def _certify_claim(claim: claims.PaperClaim, delta: float) -> Claim:
    epsilon = accountant.epsilon(claim.release.event, delta, claim.release.relation)
    return Claim(epsilon=epsilon, delta=delta, source=claim.source, reason=claim.reason)


def card_text(cards: list[Guarantee]) -> str:
    """Return all cards as plain text, or a sentence that there is no privacy.

    Where clients differ, the card of the least protected one is shown in full, and the others in a line each.
    """
    first, others = split_by_largest_epsilon(cards)
    own = [
        textwrap.fill(_describe_other(card), WIDTH, initial_indent="  · ", subsequent_indent="    ") for card in others
    ]
    listed = ["\n".join([fill("card.other_clients"), *own])] if own else []
    return "\n\n".join([*(card.as_text() for card in first), *listed]) or _no_privacy()


def _describe_other(card: Guarantee) -> str:
    unit = describe_unit(card.unit, card.view, card.clients)
    return fill("card.other_client", epsilon=round_up(card.epsilon), unit=unit, event=describe_event(card.event))


def _no_privacy() -> str:
    return "\n".join([fill("card.no_privacy_title"), "─" * WIDTH, textwrap.fill(fill("card.no_privacy"), WIDTH)])


def guarantee_data(
    job: "Job",
    completed: int,
    stopped: str | None,
    cards: list[Guarantee],
    ledger: Ledger | None,
    code_stamps: Sequence[str],
) -> dict[str, Any]:
    """Return the cards as plain data, with what was promised, how the run ended, and which code made it.

    This is the content of guarantee.json, without metrics.
    """
    return {
        "rounds": completed,
        "stopped": stopped,
        "seeded": job.key.is_seeded,
        "promise": None if job.privacy is None else to_plain(job.privacy),
        "left": [
            {"client": client, "rounds": rounds} for client, rounds in job.round_limits.items() if rounds < completed
        ],
        "guarantees": [to_plain(card) for card in cards],
        "code": code_stamps,
        "ledger": None if ledger is None else ledger.verify(),
        **_large_delta_data(job.terms, cards),
    }


def _large_delta_data(terms: Terms, cards: Sequence[Guarantee]) -> dict[str, str]:
    """Return the warning of a large δ of the first card under its key; nothing if δ is small."""
    stated = [StatedPromise(card.unit, card.view, card.epsilon, card.delta) for card in cards[:1]]
    distinct = terms.data.distinct_examples
    said = [each for promise in stated for each in delta_warnings(terms.population, promise, distinct)]
    return {"delta_warning": said[0]} if said else {}


def large_delta_line(terms: Terms, unit: Unit, delta: float) -> Iterator[Line]:
    """Yield that δ allows publishing one unit in full, where it is as large as one over their number."""
    if is_delta_large(terms.population, unit, delta, terms.data.distinct_examples):
        yield Line(fill("not_covered.large_delta"), "method")


def _uncovered_lines(
    terms: Terms, shared_budgets: list[dict[str, Any]], others: Sequence[str], metrics: Collection[str] | None
) -> Iterator[Line]:
    """Yield what no guarantee of this run covers: other runs, and numbers that it shows without noise."""
    for budget in shared_budgets:
        sentence = fill(
            f"not_covered.shared_ledger.{unit_name(from_plain(Unit, budget['unit']))}",
            spent=round_up(budget["spent"]),
            epsilon=compact(budget["epsilon"]),
            delta=compact(budget["delta"]),
            against=fill(f"not_covered.budget_against.{budget['view']}"),
        )
        yield Line(sentence)
    if others:
        yield Line(fill("not_covered.other_runs", count=len(others), names=", ".join(others)))
    for sentence in (*terms.data.not_covered, *_uncovered_numbers(terms, metrics)):
        yield as_line(sentence, "program")


def _uncovered_numbers(terms: Terms, metrics: Collection[str] | None) -> Iterator[str]:
    if terms.data.person is not None:
        yield person_bound.uncovered_sentence(terms.data.person)
    if metrics is None:
        yield fill("not_covered.unnamed_metrics")
    elif metrics:
        yield fill("not_covered.metrics", metrics=list_metrics(metrics))
    if terms.data.kind == "regression" and (metrics is None or metrics):
        yield fill("not_covered.constant")
    if terms.data.has_validation:
        yield fill("not_covered.validation_metrics")
    if terms.settings.evaluate_training:
        yield fill("not_covered.training_metrics")
    yield fill("not_covered.diagnostics")
