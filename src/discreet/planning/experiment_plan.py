"""The plan of an experiment: what it will promise and cost, before any training."""

from collections.abc import Sequence
from typing import Any

from discreet.algorithms import per_client
from discreet.algorithms.noise_to_signal import noise_multiplier, noise_to_signal
from discreet.experiment.configuration.experiment_file import Source
from discreet.experiment.loop import run_guarantees
from discreet.experiment.promise import data_ranges, person_bound, run_spending
from discreet.experiment.promise.promise import client_groups
from discreet.experiment.promise.promise_warnings import StatedPromise
from discreet.experiment.terms import Terms
from discreet.part import to_plain
from discreet.planning.learning_forecast import forecast_warnings
from discreet.planning.local_work import recommend_local_work
from discreet.planning.other_promises import affordable_rounds, price_promises
from discreet.planning.plan_warnings import plan_warnings
from discreet.planning.schedule_warning import schedule_warnings
from discreet.planning.traffic import planned_traffic
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.wording import compact, round_up

OTHER_EPSILON_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)


def plan_experiment(source: Source, terms: Terms, advice: Sequence[str] = ()) -> dict[str, Any]:
    """Return guarantee, noise, traffic and the cost of other epsilons: the JSON object of `discreet plan`.

    Args:
        source: The experiment.
        terms: What the numbers follow from. What depends on a model that was not run is None, and `unknown` says why.
        advice: Sentences that recommend another recipe.
    """
    cards = certify_plan(terms)
    return {
        **plan_numbers(terms, cards),
        "affordable_rounds": _affordable_rounds(terms),
        "certified": bool(cards) and cards[0].is_certified,
        "ring_bits": terms.algorithm.aggregation.ring_bits,
        "wraparound": terms.algorithm.wraparound_probability(terms.population, terms.rounds),
        "seeded": terms.is_seeded,
        "bits": terms.size and terms.size.bits._asdict(),
        "secure_sums": terms.algorithm.aggregation.is_secure,
        "by_client": _by_client(terms, cards),
        "unknown": list(terms.unknown),
        "advice": [*person_bound.owner_notices(terms.data.person, terms.data.rows_left_out), *advice],
        "other_epsilons": _other_epsilons(source, terms),
        "guarantees": [to_plain(card) for card in cards],
    }


def certify_plan(terms: Terms) -> list[Guarantee]:
    """Return every guarantee of the plan, the promised one first."""
    return run_guarantees.certify_run(terms, terms.rounds, None, shared=False)


def state_bound(card: Guarantee) -> str:
    """Return ε and δ of a card, and whether they are certified, in one sentence."""
    return f"{card.status}: ε = {round_up(card.epsilon)} at δ = {compact(card.delta)}."


def explain_bound(card: Guarantee) -> str:
    """Return what ε and δ of a card mean, and claims beside them, in sentences."""
    claimed = (f" Claimed {claim.source}, but not certified: ε = {compact(claim.epsilon, 4)}." for claim in card.claims)
    return f"{card.sentence()}{''.join(claimed)}"


def plan_numbers(terms: Terms, cards: Sequence[Guarantee]) -> dict[str, Any]:
    """Return the numbers and warnings that plans and the planner's page show.

    Args:
        terms: What the numbers follow from.
        cards: The guarantees of the plan.
    """
    promises = [StatedPromise(card.unit, card.view, card.epsilon, card.delta) for card in cards]
    distinct, size = terms.data.distinct_examples, terms.size
    return {
        "rounds": terms.rounds,
        "clients": terms.population.clients,
        "examples": sum(terms.population.examples),
        "distinct_examples": distinct,
        "max_multiplicity": terms.population.max_multiplicity,
        "expected_cohort": terms.algorithm.sampling.expected_cohort(terms.population),
        "parameters": terms.parameters,
        "noise_multiplier": noise_multiplier(terms.algorithm),
        "noise_to_signal": size and noise_to_signal(terms.algorithm, terms.population, size.parameters),
        "epsilon": cards[0].epsilon if cards else None,
        "delta": cards[0].delta if cards else None,
        "bytes": planned_traffic(terms, terms.rounds),
        "local_work": recommend_local_work(terms)._asdict(),
        "warnings": [
            *data_ranges.plan_warnings(terms.data.ranges_from_data),
            *plan_warnings(terms.algorithm, terms.population, promises, distinct),
            *schedule_warnings(terms.algorithm.trainer, terms.rounds),
            *forecast_warnings(terms),
        ],
    }


def _affordable_rounds(terms: Terms) -> int | None:
    """Return the most rounds that today's noise affords; None without a promise, or where clients differ."""
    if terms.privacy is None or len(client_groups(terms.algorithm, terms.privacy, terms.population)) > 1:
        return None
    return affordable_rounds(terms, terms.privacy.largest_epsilon)


def _by_client(terms: Terms, cards: Sequence[Guarantee]) -> list[dict[str, Any]]:
    """Describe each group of clients with the same numbers; empty where all clients are the same."""
    groups = []
    for kind in client_groups(terms.algorithm, terms.privacy, terms.population):
        if kind.clients is not None:
            own = next((card.epsilon for card in cards if card.clients == kind.clients), None)
            numbers = {name: getattr(kind.algorithm.trainer, name, None) for name in per_client.CLIENT_FIELDS}
            groups.append(
                {
                    "clients": list(kind.clients),
                    **numbers,
                    "noise_multiplier": noise_multiplier(kind.algorithm),
                    "rounds": run_spending.rounds_joined(kind, terms.rounds, terms.round_limits),
                    "promised": None if kind.privacy is None else kind.privacy.largest_epsilon,
                    "epsilon": own,
                }
            )
    return groups


def _other_epsilons(source: Source, terms: Terms) -> list[dict[str, Any]]:
    if terms.privacy is None:
        return []
    epsilons = [terms.privacy.largest_epsilon * factor for factor in OTHER_EPSILON_FACTORS]
    return [cost._asdict() for cost in price_promises(source, terms, epsilons)]
