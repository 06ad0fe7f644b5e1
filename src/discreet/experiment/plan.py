"""What an experiment will promise and cost, before any training."""

from collections.abc import Sequence
from typing import Any

import torch

from discreet import per_client
from discreet.algorithms import Algorithm
from discreet.algorithms.traffic import bits
from discreet.errors import InvalidInput
from discreet.experiment import card, keeping
from discreet.experiment.advice import advice
from discreet.experiment.config import Source
from discreet.experiment.job import Job
from discreet.experiment.promise import Privacy, kinds
from discreet.params import count
from discreet.part import plain
from discreet.privacy.guarantee import Guarantee

FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
MOST_ROUNDS = 1_000_000


def planned(source: Source, job: Job) -> dict[str, Any]:
    """The guarantee, the noise, the traffic, and what another ε would cost, as plain data."""
    cards = card.guarantees(job, job.rounds, None, shared=False)
    sent = bits(job.algorithm, job.params)
    joined = job.algorithm.sampling.rounds_joined(job.population, job.rounds)
    return {
        "rounds": job.rounds,
        "clients": job.population.clients,
        "examples": sum(job.population.examples),
        "distinct_examples": _distinct(job),
        "max_multiplicity": job.population.max_multiplicity,
        "expected_cohort": job.algorithm.sampling.expected_cohort(job.population),
        "parameters": count(job.params),
        "noise_multiplier": noise_of(job.algorithm),
        "epsilon": cards[0].epsilon if cards else None,
        "delta": cards[0].delta if cards else None,
        "seeded": job.key.seeded,
        "bits": sent._asdict(),
        "bytes": {"down": sent.down // 8, "up": sent.up // 8, "client_total": (sent.up + sent.down) // 8 * joined},
        "by_client": _by_client(job, cards),
        "advice": list(advice(job)),
        "other_epsilons": list(_others(source, job)),
        "guarantees": [plain(each) for each in cards],
    }


def _distinct(job: Job) -> int | None:
    """How many examples there are when each is counted once; None where only the data's owner could know."""
    if job.data.order is not None:
        return int(torch.bincount(job.data.order).count_nonzero())
    return sum(job.population.examples) if job.population.max_multiplicity == 1 else None


def noise_of(algorithm: Algorithm) -> float | None:
    """The noise multiplier that runs: the clients' own, else the server's; the smallest, where clients differ."""
    for part in (algorithm.trainer, algorithm.mechanism):
        noise: float | None = getattr(per_client.worst(part), "noise_multiplier", None)
        if noise is not None:
            return noise
    return None


def _by_client(job: Job, cards: Sequence[Guarantee]) -> list[dict[str, Any]]:
    """What differs between clients, a line for each kind of them; nothing where all are alike."""
    found = []
    for kind in kinds(job.algorithm, job.privacy, job.population):
        if kind.clients is not None:
            own = next((each.epsilon for each in cards if each.clients == kind.clients), None)
            numbers = {name: getattr(kind.algorithm.trainer, name, None) for name in per_client.OWN}
            found.append(
                {
                    "clients": list(kind.clients),
                    **numbers,
                    "noise_multiplier": noise_of(kind.algorithm),
                    "rounds": keeping.joined(kind, job.rounds, job.lasting),
                    "promised": None if kind.privacy is None else kind.privacy.most,
                    "epsilon": own,
                }
            )
    return found


def _others(source: Source, job: Job) -> Any:
    """For other promises: the noise that they need over all rounds, and the rounds that today's noise would allow."""
    if job.privacy is None or len(kinds(job.algorithm, job.privacy, job.population)) > 1:
        return  # where clients differ, there is no one answer
    is_open = keeping.open_noise(source.experiment.algorithm)
    for factor in FACTORS:
        wanted = job.privacy.times(factor)
        yield {
            "epsilon": wanted.most,
            "noise_multiplier": _noise(source.experiment.algorithm, wanted, job) if is_open else None,
            "rounds_at_this_noise": _affordable(job, wanted.most),
        }


def _noise(algorithm: Algorithm, privacy: Privacy, job: Job) -> float | None:
    try:
        return noise_of(keeping.kept(algorithm, privacy, job.rounds, job.population, count(job.params)))
    except InvalidInput:  # no noise is enough
        return None


def _affordable(job: Job, epsilon: float) -> int:
    """The most rounds whose ε stays within this, up to a million."""

    def fits(rounds: int) -> bool:
        spent = job.spent(rounds)
        return spent is not None and spent <= epsilon

    low, high = 0, 1
    while high <= MOST_ROUNDS and fits(high):
        low, high = high, 2 * high
    high = min(high, MOST_ROUNDS + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
