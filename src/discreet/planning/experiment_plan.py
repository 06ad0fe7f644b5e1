"""The plan of an experiment: what it will promise and cost, before any training."""

from collections.abc import Sequence
from typing import Any

import torch

from discreet.algorithms import per_client
from discreet.algorithms.message_sizes import message_bits
from discreet.algorithms.noise_to_signal import noise_multiplier, noise_to_signal
from discreet.experiment.configuration.experiment_file import Source
from discreet.experiment.job import Job
from discreet.experiment.loop import run_guarantees
from discreet.experiment.promise import data_ranges, person_bound, run_spending
from discreet.experiment.promise.promise import client_groups
from discreet.params import count_values
from discreet.part import to_plain
from discreet.planning.advice import advice
from discreet.planning.local_work import recommend_local_work
from discreet.planning.other_promises import affordable_rounds, price_promises
from discreet.planning.plan_warnings import StatedPromise, plan_warnings
from discreet.planning.traffic import job_traffic
from discreet.privacy.guarantee import Guarantee

OTHER_EPSILON_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)


def plan_experiment(source: Source, job: Job) -> dict[str, Any]:
    """Return guarantee, noise, traffic and the cost of other epsilons: the JSON object of `discreet plan`."""
    cards = run_guarantees.certify_run(job, job.rounds, None, shared=False)
    promises = [StatedPromise(card.unit, card.view, card.epsilon, card.delta) for card in cards]
    distinct, size = _count_distinct(job), count_values(job.params)
    return {
        "rounds": job.rounds,
        "clients": job.population.clients,
        "examples": sum(job.population.examples),
        "distinct_examples": distinct,
        "max_multiplicity": job.population.max_multiplicity,
        "expected_cohort": job.algorithm.sampling.expected_cohort(job.population),
        "parameters": size,
        "noise_multiplier": noise_multiplier(job.algorithm),
        "noise_to_signal": noise_to_signal(job.algorithm, job.population, size),
        "affordable_rounds": _affordable_rounds(job),
        "epsilon": cards[0].epsilon if cards else None,
        "delta": cards[0].delta if cards else None,
        "certified": bool(cards) and cards[0].is_certified,
        "ring_bits": job.algorithm.aggregation.ring_bits,
        "wraparound": job.algorithm.wraparound_probability(job.population, job.rounds),
        "seeded": job.key.is_seeded,
        "bits": message_bits(job.algorithm, job.params)._asdict(),
        "bytes": job_traffic(job, job.rounds),
        "secure_sums": job.algorithm.aggregation.is_secure,
        "local_work": recommend_local_work(job)._asdict(),
        "by_client": _by_client(job, cards),
        "warnings": [
            *data_ranges.plan_warnings(job.task.ranges_from_data),
            *plan_warnings(job.algorithm, job.population, promises, distinct),
        ],
        "advice": [*person_bound.owner_notices(job.task), *advice(job)],
        "other_epsilons": _other_epsilons(source, job),
        "guarantees": [to_plain(card) for card in cards],
    }


def _affordable_rounds(job: Job) -> int | None:
    """Return the most rounds that today's noise affords; None without a promise, or where clients differ."""
    if job.privacy is None or len(client_groups(job.algorithm, job.privacy, job.population)) > 1:
        return None
    return affordable_rounds(job, job.privacy.largest_epsilon)


def _count_distinct(job: Job) -> int | None:
    """Return the number of examples, each counted once; None where only the owner of the data knows it."""
    if job.data.order is not None:
        return int(torch.bincount(job.data.order).count_nonzero())
    return sum(job.population.examples) if job.population.max_multiplicity == 1 else None


def _by_client(job: Job, cards: Sequence[Guarantee]) -> list[dict[str, Any]]:
    """Describe each group of clients with the same numbers; empty where all clients are the same."""
    groups = []
    for kind in client_groups(job.algorithm, job.privacy, job.population):
        if kind.clients is not None:
            own = next((card.epsilon for card in cards if card.clients == kind.clients), None)
            numbers = {name: getattr(kind.algorithm.trainer, name, None) for name in per_client.CLIENT_FIELDS}
            groups.append(
                {
                    "clients": list(kind.clients),
                    **numbers,
                    "noise_multiplier": noise_multiplier(kind.algorithm),
                    "rounds": run_spending.rounds_joined(kind, job.rounds, job.round_limits),
                    "promised": None if kind.privacy is None else kind.privacy.largest_epsilon,
                    "epsilon": own,
                }
            )
    return groups


def _other_epsilons(source: Source, job: Job) -> list[dict[str, Any]]:
    if job.privacy is None:
        return []
    epsilons = [job.privacy.largest_epsilon * factor for factor in OTHER_EPSILON_FACTORS]
    return [cost._asdict() for cost in price_promises(source, job, epsilons)]
