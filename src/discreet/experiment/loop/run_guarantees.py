"""The guarantees of a run, each with its assumptions and with what it does not cover."""

import textwrap
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from discreet.algorithms import claims, failure_odds
from discreet.algorithms.declarations import trusted_parts
from discreet.experiment.metrics import list_metrics
from discreet.experiment.promise import person_bound, run_spending
from discreet.experiment.promise.promise import client_groups
from discreet.experiment.promise.released_rounds import ReleasedRound
from discreet.experiment.terms import Terms
from discreet.part import from_plain, to_plain
from discreet.privacy import accountant
from discreet.privacy.guarantee import Claim, Guarantee, LedgerMark, split_by_largest_epsilon
from discreet.privacy.ledger import Ledger
from discreet.privacy.release import Unit
from discreet.privacy.text_card import WIDTH
from discreet.privacy.wording import compact, describe_event, describe_unit, round_up, unit_name
from discreet.secure_sums.secagg.degree import Degree
from discreet.words import fill

if TYPE_CHECKING:
    from discreet.experiment.job import Job


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
    """
    counted = terms.rounds if is_stop_chosen else completed
    if is_stop_chosen and released is not None:
        released = [*released, *(ReleasedRound(round, None) for round in range(completed, terms.rounds))]
    state = None if ledger is None else ledger.summary()
    mark = None if state is None else LedgerMark(head=state["head"], length=state["records"])
    delta = terms.privacy.delta if terms.privacy else run_spending.DEFAULT_DELTA
    others = () if terms.deployment is None else terms.deployment.other_runs()
    cards, assumed = [], list(_assumptions(terms, completed, counted, released, others, shared=shared))
    evaluated = terms.metric_names if metrics is None else metrics
    uncovered = list(_uncovered_sentences(terms, state["budgets"] if state and shared else [], others, evaluated))
    if is_stop_chosen:
        uncovered.append(fill("not_covered.chosen_stop", completed=completed, rounds=terms.rounds))
    for kind in client_groups(terms.algorithm, terms.privacy, terms.population):
        joined = run_spending.rounds_joined(kind, counted, terms.round_limits)
        happened = run_spending.first_rounds(released, joined)
        claimed = joined if happened is None else len(happened)
        stated = claims.paper_claims(kind.algorithm, claimed, terms.population) if claimed else []
        for release in run_spending.certifiable_releases(kind, joined, terms.population, happened):
            certified = Guarantee.certify(
                release,
                delta,
                assumptions=assumed,
                not_covered=uncovered,
                claims=[_certify_claim(claim, delta) for claim in stated if claim.release.unit == release.unit],
                ledger=mark,
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
    }


def _assumptions(
    terms: Terms,
    completed: int,
    counted: int,
    released: Sequence[ReleasedRound] | None,
    others: Sequence[str],
    *,
    shared: bool,
) -> Iterator[str]:
    """Yield what the guarantees assume.

    Args:
        completed: Number of completed rounds.
        counted: Number of rounds that the guarantees cover.
        released: Those of the counted rounds that released something.
        others: Runs of the same deployment, which no ledger at the server counts together with this one.
    """
    planned = terms.spent_epsilon(terms.rounds)
    if planned is not None:
        yield from _plan_assumptions(terms, completed, counted, released, round_up(planned))
    yield from _leaving_assumption(terms, completed)
    if terms.is_seeded:
        yield fill("assumes.seeded")
    yield _simulation_note(terms)
    sums = counted if terms.algorithm.standardisation is None else counted + 2  # moments count for at most two rounds
    yield from _secure_sum_assumptions(terms, sums)
    yield from failure_odds.describe_failure_odds(terms.algorithm, terms.population, sums)
    if not shared and not others:
        is_deployed = terms.deployment is not None and not terms.deployment.is_rehearsal
        yield fill("assumes.first_run" if is_deployed else "assumes.this_run")
    if trusted_parts(terms.algorithm):
        yield fill("assumes.trials", sentences=" ".join(terms.part_trials))
    if terms.isolation_note is not None:
        yield terms.isolation_note
    yield fill("assumes.public_clients")
    most = terms.population.max_multiplicity
    yield fill("assumes.disjoint_clients") if most == 1 else fill("assumes.overlapping_clients", most=most)
    if terms.data.public_examples is not None:
        yield fill("assumes.public_examples", examples=f"{terms.data.public_examples:,}")
    yield from terms.data.facts
    yield from _standardisation_sentence(terms)
    if terms.data.person is not None:
        yield person_bound.assumption(terms.data.person, deployed=not terms.data.is_here)


def _standardisation_sentence(terms: Terms) -> Iterator[str]:
    """Yield whether numbers are standardised, and that nothing else was fitted on the data unless its ranges were."""
    wanted, chosen = terms.data.standardisation, terms.algorithm.standardisation
    if wanted is None:
        return
    if chosen is None:
        sentence = fill("data.table.not_standardised")
    elif chosen.noise_multiplier is None:
        sentence = fill("data.table.standardised_exactly", columns=chosen.columns)
    else:
        noise = round_up(chosen.noise_multiplier, 4)
        sentence = fill("data.table.standardised", columns=chosen.columns, noise=noise)
    rest = fill("data.table.nothing_fitted" if chosen is None else "data.table.nothing_else_fitted")
    yield sentence if terms.data.ranges_from_data else f"{sentence} {rest}"


def _plan_assumptions(
    terms: Terms, completed: int, counted: int, released: Sequence[ReleasedRound] | None, whole: str
) -> Iterator[str]:
    """Yield why less than the whole plan may be counted. Else `whole` is what holds, the plan's ε."""
    if counted < terms.rounds:
        yield fill("assumes.early_end", completed=completed, rounds=terms.rounds, epsilon=whole)
    if released is None or terms.spent_epsilon(counted, released) == terms.spent_epsilon(counted):
        return
    if len(released) < counted:
        lost = counted - len(released)
        yield fill("assumes.dropouts_and_lost_rounds", lost=lost, completed=completed, epsilon=whole)
    else:
        yield fill("assumes.dropouts", epsilon=whole)


def _leaving_assumption(terms: Terms, completed: int) -> Iterator[str]:
    """Yield which clients left when their budget was spent."""
    left = {client: rounds for client, rounds in terms.round_limits.items() if rounds < completed}
    few = ", ".join(
        fill("assumes.client_left", client=client, round=rounds) for client, rounds in list(left.items())[:6]
    )
    if len(left) > 6:
        yield fill("assumes.more_clients_left", clients=few, more=len(left) - 6)
    elif left:
        yield fill("assumes.clients_left", clients=few)


def _simulation_note(terms: Terms) -> str:
    """Return where the clients are: simulated, rehearsed on one machine, or real."""
    if terms.settings.engine.is_simulated:
        return fill("assumes.simulated")
    is_rehearsal = terms.deployment is not None and terms.deployment.is_rehearsal
    return fill("assumes.rehearsed" if is_rehearsal else "assumes.deployed")


def _secure_sum_assumptions(terms: Terms, done: int) -> Iterator[str]:
    """Yield what a secure sum assumes."""
    integers = terms.algorithm.mechanism.integer_shares
    if not terms.algorithm.aggregation.is_secure or integers is None:
        return
    fewest = str(integers.fewest_clients)
    if integers.colluding:
        yield fill("assumes.secure_sum_colluding", colluding=integers.colluding, fewest=fewest)
    else:
        yield fill("assumes.secure_sum", fewest=fewest)
    degree = terms.settings.engine.mask_degree(terms.algorithm, terms.population)
    if degree is not None:
        yield from _mask_graph_assumption(degree, done)
    else:
        yield fill("assumes.sums_in_clear")
    yield fill("assumes.lattice")


def _mask_graph_assumption(degree: Degree, rounds: int) -> Iterator[str]:
    """Yield the odds of a sparse mask graph. Nothing if every client shares masks with every other."""
    if degree.assumptions is None:
        return
    assumed, every = degree.assumptions, rounds * degree.assumptions.chance  # each round may have a session of its own
    yield fill(
        "assumes.mask_graph",
        neighbours=degree.neighbours,
        colluding=f"{assumed.colluding:.0%}",
        leaving=f"{assumed.leaving:.0%}",
        bits=f"{assumed.security_bits:g}",
        rounds=f"{rounds:,}",
        probability=round_up(every, 2),
    )


def _uncovered_sentences(
    terms: Terms, shared_budgets: list[dict[str, Any]], others: Sequence[str], metrics: Collection[str] | None
) -> Iterator[str]:
    for budget in shared_budgets:
        yield fill(
            f"not_covered.shared_ledger.{unit_name(from_plain(Unit, budget['unit']))}",
            spent=round_up(budget["spent"]),
            epsilon=compact(budget["epsilon"]),
            delta=compact(budget["delta"]),
            against=fill(f"not_covered.budget_against.{budget['view']}"),
        )
    if others:
        yield fill("not_covered.other_runs", count=len(others), names=", ".join(others))
    yield from terms.data.not_covered
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
