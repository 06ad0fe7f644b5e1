"""What an experiment will promise and cost, before any training."""

from collections.abc import Sequence
from typing import Any

import torch

from discreet.algorithms import per_client
from discreet.algorithms.aggregation import Lattice
from discreet.algorithms.message_sizes import message_bits
from discreet.algorithms.noise_to_signal import noise_multiplier, noise_to_signal
from discreet.experiment.configuration.experiment_file import Source
from discreet.experiment.loop.job import Job
from discreet.experiment.promise import data_ranges, person_bound, run_guarantees, spending
from discreet.experiment.promise.promise import client_groups
from discreet.params import count_values
from discreet.part import to_plain
from discreet.planning.advice import advice
from discreet.planning.local_work import local_work
from discreet.planning.other_promises import affordable, costs
from discreet.planning.plan_warnings import warnings
from discreet.privacy.guarantee import Guarantee

FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)


def planned(source: Source, job: Job) -> dict[str, Any]:
    """The guarantee, the noise, the traffic, and what another ε would cost, as plain data."""
    cards = run_guarantees.certify_run(job, job.rounds, None, shared=False)
    distinct, size, ring = _distinct(job), count_values(job.params), job.algorithm.aggregation
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
        "affordable_rounds": _within_the_promise(job),
        "epsilon": cards[0].epsilon if cards else None,
        "delta": cards[0].delta if cards else None,
        "ring_bits": ring.bits if isinstance(ring, Lattice) else None,
        "wraparound": job.algorithm.wraparound_probability(job.population, job.rounds),
        "seeded": job.key.is_seeded,
        "bits": message_bits(job.algorithm, job.params)._asdict(),
        "bytes": sent(job, job.rounds),
        "secure_sums": job.algorithm.aggregation.is_secure,
        "local_work": local_work(job)._asdict(),
        "by_client": _by_client(job, cards),
        "warnings": [
            *data_ranges.plan_warnings(job.task.ranges_from_data),
            *warnings(job.algorithm, job.population, cards, distinct),
        ],
        "advice": [*person_bound.owner_notices(job.task), *advice(job)],
        "other_epsilons": _others(source, job),
        "guarantees": [to_plain(each) for each in cards],
    }


def sent(job: Job, rounds: int) -> dict[str, int]:
    """Bytes that one client gets and sends in a round; in all, at most and as expected; and of all who are expected.

    What is expected of one is so of a client who stays for all rounds.
    """
    size, sampling = message_bits(job.algorithm, job.params), job.algorithm.sampling
    down, up, joined = size.down // 8, size.up // 8, sampling.rounds_joined(job.population, rounds)
    rate = sampling.expected_cohort(job.population) / job.population.clients
    visits = round(rate * sum(job.round_limits.get(client, rounds) for client in range(job.population.clients)))
    return {
        "down": down,
        "up": up,
        "client_total": (up + down) * joined,
        "client_expected": round((up + down) * rate * rounds),
        "all_down": down * visits,
        "all_up": up * visits,
        "all_total": (up + down) * visits,
    }


def _within_the_promise(job: Job) -> int | None:
    """The most rounds that today's noise affords; None without a promise, and where clients differ."""
    if job.privacy is None or len(client_groups(job.algorithm, job.privacy, job.population)) > 1:
        return None
    return affordable(job, job.privacy.largest_epsilon)


def _distinct(job: Job) -> int | None:
    """How many examples there are when each is counted once; None where only the data's owner could know."""
    if job.data.order is not None:
        return int(torch.bincount(job.data.order).count_nonzero())
    return sum(job.population.examples) if job.population.max_multiplicity == 1 else None


def _by_client(job: Job, cards: Sequence[Guarantee]) -> list[dict[str, Any]]:
    """What differs between clients, a line for each kind of them; nothing where all are alike."""
    found = []
    for kind in client_groups(job.algorithm, job.privacy, job.population):
        if kind.clients is not None:
            own = next((each.epsilon for each in cards if each.clients == kind.clients), None)
            numbers = {name: getattr(kind.algorithm.trainer, name, None) for name in per_client.CLIENT_FIELDS}
            found.append(
                {
                    "clients": list(kind.clients),
                    **numbers,
                    "noise_multiplier": noise_multiplier(kind.algorithm),
                    "rounds": spending.rounds_joined(kind, job.rounds, job.round_limits),
                    "promised": None if kind.privacy is None else kind.privacy.largest_epsilon,
                    "epsilon": own,
                }
            )
    return found


def _others(source: Source, job: Job) -> list[dict[str, Any]]:
    if job.privacy is None:
        return []
    return [each._asdict() for each in costs(source, job, (job.privacy.largest_epsilon * factor for factor in FACTORS))]
