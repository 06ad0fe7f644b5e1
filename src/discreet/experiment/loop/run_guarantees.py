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
from discreet.privacy.guarantee import WIDTH, Claim, Guarantee, LedgerMark, split_by_largest_epsilon
from discreet.privacy.ledger import Ledger
from discreet.privacy.release import Unit
from discreet.privacy.wording import compact, describe_event, describe_unit, round_up, unit_name
from discreet.secure_sums.secagg.degree import Degree

if TYPE_CHECKING:
    from discreet.experiment.job import Job

NO_PRIVACY = """\
No privacy
────────────────────────────────────────────────────────────────────────────────
This run adds no noise, or none that its parts declare, so nothing is promised:
anyone who sees the updates or the model may learn anything about any example.
"""
SEEDED = (
    "Nobody knows the seed. It is written in the experiment, so seeded noise protects nobody: the numbers here are "
    "those of the same run without a seed."
)
SIMULATED = (
    "The run is simulated: one process plays every client, and the noise comes from torch's generator, which is not a "
    "cryptographic source."
)
DEPLOYED = (
    "Each client trains on its own machine, draws its own noise there, and keeps a ledger of its own beside this one."
)
REHEARSED = (
    "The run is a rehearsal: one machine plays the server and every client, and has the keys, the noise and the "
    "ledgers of all of them. Nothing is protected from someone who controls that machine."
)
THIS_RUN = "Nothing else was released from the same data: the ledger counts this run only."
FIRST_RUN = (
    "Nothing else was released from the same data. When this was written, this deployment had made no other run; what "
    "later ones reveal comes on top, and each client's own ledger counts it."
)
CHOSEN_STOP = (
    "Why the run was stopped by its caller after {completed} of {rounds} rounds. ε counts all {rounds}, so a reason in "
    "the models is covered. A reason in anything else that the caller saw of the data, such as metrics, norms or test "
    "examples, is not."
)


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
        uncovered.append(CHOSEN_STOP.format(completed=completed, rounds=terms.rounds))
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
        textwrap.fill(
            f"ε = {round_up(card.epsilon)}: {describe_unit(card.unit, card.view, card.clients)}, "
            f"{describe_event(card.event)}",
            WIDTH,
            initial_indent="  · ",
            subsequent_indent="    ",
        )
        for card in others
    ]
    listed = ["\n".join(["Other clients, whose numbers differ", *own])] if own else []
    return "\n\n".join([*(card.as_text() for card in first), *listed]) or NO_PRIVACY.rstrip()


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
    whole = "" if planned is None else f"if it had, ε = {round_up(planned)} of the whole plan is what holds."
    if counted < terms.rounds and whole:
        ended = f"the run ended after {completed} of {terms.rounds} rounds"
        yield f"That {ended} had nothing to do with what they showed; {whole}"
    if released is not None and whole and terms.spent_epsilon(counted, released) != terms.spent_epsilon(counted):
        lost = f", and that {counted - len(released)} of {completed} were lost," if len(released) < counted else ""
        yield f"Who dropped out of which round{lost} had nothing to do with what earlier rounds showed; {whole}"
    gone = [
        f"client {client} after round {rounds}" for client, rounds in terms.round_limits.items() if rounds < completed
    ]
    if gone:
        few = ", ".join(gone[:6]) + (f" and {len(gone) - 6} more" if gone[6:] else "")
        yield f"Who left when its budget was spent ({few}) follows from public numbers, and so tells nothing."
    if terms.is_seeded:
        yield SEEDED
    yield _simulation_note(terms)
    yield from _secure_sum_assumptions(terms, counted)
    yield from failure_odds.describe_failure_odds(terms.algorithm, terms.population, counted)
    if not shared and not others:
        yield FIRST_RUN if terms.deployment is not None and not terms.deployment.is_rehearsal else THIS_RUN
    if trusted_parts(terms.algorithm):
        yield f"Tried before training, which proves nothing. {' '.join(terms.part_trials)}"
    if terms.isolation_note is not None:
        yield terms.isolation_note
    yield "How many clients there are, and how many examples each holds, is public."
    most = terms.population.max_multiplicity
    yield "No two clients hold the same example." if most == 1 else f"At most {most} clients hold the same example."
    if terms.data.public_examples is not None:
        public = f"{terms.data.public_examples:,} examples that no client holds"
        yield f"{public} are public, by declaration: nobody protects them."
    yield from terms.data.facts
    if terms.data.person is not None:
        yield person_bound.assumption(terms.data.person, deployed=not terms.data.is_here)


def _simulation_note(terms: Terms) -> str:
    """Return where the clients are: simulated, rehearsed on one machine, or real."""
    if terms.settings.engine.is_simulated:
        return SIMULATED
    return REHEARSED if terms.deployment is not None and terms.deployment.is_rehearsal else DEPLOYED


def _secure_sum_assumptions(terms: Terms, done: int) -> Iterator[str]:
    """Yield what a secure sum assumes."""
    integers = terms.algorithm.mechanism.integer_shares
    if not terms.algorithm.aggregation.is_secure or integers is None:
        return
    few = f"at most {integers.colluding} of the clients tell" if integers.colluding else "no client tells"
    yield (
        f"The server learns the sum and nothing else; {few} it more; and no sum is made of fewer than "
        f"{integers.fewest_clients} clients."
    )
    degree = terms.settings.engine.mask_degree(terms.algorithm, terms.population)
    if degree is not None:
        yield from _mask_graph_assumption(degree, done)
    else:
        yield 'The sums are secure: here they were added up in clear. engine = { kind = "secure" } makes them so.'
    yield "What is rounded onto the lattice is computed in floating point; from there on all is whole numbers."


def _mask_graph_assumption(degree: Degree, rounds: int) -> Iterator[str]:
    """Yield the odds of a sparse mask graph. Nothing if every client shares masks with every other."""
    if degree.assumptions is None:
        return
    assumed, every = degree.assumptions, rounds * degree.assumptions.chance  # each round may have a session of its own
    yield (
        f"Each client shares masks with {degree.neighbours} others, on a random graph. Against a server that keeps the "
        f"rules, with up to {assumed.colluding:.0%} of the clients on its side and {assumed.leaving:.0%} gone, they "
        f"hide all but the sum, save for a chance of 2^-{assumed.security_bits:g} a round: over {rounds:,} rounds "
        f"that may add up to {round_up(every, 2)} to δ, which is not counted."
    )


def _uncovered_sentences(
    terms: Terms, shared_budgets: list[dict[str, Any]], others: Sequence[str], metrics: Collection[str] | None
) -> Iterator[str]:
    for budget in shared_budgets:
        yield (
            f"Other runs on the same data. With all that its ledger counts, ε = {round_up(budget['spent'])} of "
            f"{compact(budget['epsilon'])} at δ = {compact(budget['delta'])} is spent for one "
            f"{unit_name(from_plain(Unit, budget['unit']))} against the {budget['view']}."
        )
    if others:
        yield (
            f"Other runs of this deployment on the same data, {len(others)} when this was written: "
            f"{', '.join(others)}. What they reveal comes on top of ε; each client's own ledger counts all of them."
        )
    yield from terms.data.not_covered
    if terms.data.person is not None:
        yield person_bound.uncovered_sentence(terms.data.person)
    if metrics is None or metrics:
        named = "The metrics" if metrics is None else list_metrics(metrics)
        yield f"{named}, computed without noise on test examples."
        if terms.data.kind == "regression":
            yield "The error of a constant (constant_mse), which is the mean of the clients' targets, without noise."
    if terms.settings.evaluate_training:
        yield "The same on training examples (evaluate_training), and the gap between the two, without noise."
    yield (
        "The norms, shares, signal-to-noise ratios, traffic and cohort sizes in rounds.jsonl, which are there to "
        "diagnose the run."
    )
