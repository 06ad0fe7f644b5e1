"""The planner's answer: numbers and curves for one position of the sliders, by the accountants that certify a run."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from time import monotonic
from typing import Any

import torch

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.message_sizes import message_bits
from discreet.algorithms.noise_to_signal import noise_multiplier, noise_to_signal
from discreet.errors import InvalidInput
from discreet.experiment.promise import calibrate, run_spending
from discreet.experiment.promise.promise import PromiseEvent, promise_event
from discreet.planning.plan_warnings import StatedPromise, plan_warnings
from discreet.planning.planner.slider_question import MOST, Question
from discreet.planning.traffic import expected_traffic
from discreet.privacy import accountant, calibration
from discreet.privacy.calibration import EpsilonTarget
from discreet.privacy.wording import sentence

SPREAD = 16.0  # a curve goes from a sixteenth of the current number to sixteen times it
FALSE_ALARMS = 0.001


@lru_cache(maxsize=256)
def answer_question(question: Question, patience: float = math.inf) -> dict[str, Any]:
    """Return the answer as plain data.

    If no noise keeps the promise, or the algorithm can't make it, `reason` says why, and only bytes are known.

    Args:
        patience: Seconds after which curves get no more points: they are shorter then, and still pass through the
            current number.
    """
    until = monotonic() + patience
    try:
        algorithm = calibrate_algorithm(question)
    except InvalidInput as refusal:
        open_noise = question.algorithm()
        known = {
            "bytes": question_traffic(question, open_noise),
            "curves": {"bytes": _bytes_by_rounds(question, open_noise)},
        }
        return {"unit": question.unit, "reason": refusal.problem, **known}
    noise = noise_multiplier(algorithm)
    assert noise is not None
    noises = [other for other in _geometric(noise, 11) if other >= calibration.LEAST]
    near = noise / math.sqrt(question.rounds)
    promised = promise_event(question.privacy(), algorithm, question.rounds, question.population())
    epsilon = accountant.epsilon(promised.event, question.delta, promised.relation)
    recognised = accountant.true_positive_rate(promised.event, FALSE_ALARMS, promised.relation)
    promise = StatedPromise(question.unit, question.view, epsilon, question.delta)
    distinct = sum(question.population().examples)
    return {
        "unit": question.unit,
        "reason": "",
        "noise_multiplier": noise,
        "epsilon": epsilon,
        "noise_to_signal": noise_to_signal(algorithm, question.population(), question.dimension),
        "bytes": question_traffic(question, algorithm),
        "sentence": sentence(question.view, question.unit, promised.relation, FALSE_ALARMS, recognised),
        "warnings": list(plan_warnings(algorithm, question.population(), [promise], distinct)),
        "curves": {
            "epsilon": _curve(noises, noise, until, lambda x: _epsilon_at(question, x)),
            "noise": _curve(
                _nearby_counts("rounds", question),
                question.rounds,
                until,
                lambda x: _noise_for(replace(question, rounds=int(x)), near),
            ),
            "noise_to_signal": _curve(
                _nearby_counts("clients", question),
                question.clients,
                until,
                lambda x: _noise_to_signal(replace(question, clients=int(x)), near),
            ),
            "bytes": _bytes_by_rounds(question, algorithm),
        },
    }


@lru_cache(maxsize=2048)
def calibrate_algorithm(question: Question) -> Algorithm:
    """Return the algorithm with the least noise that keeps the promise.

    Raises:
        InvalidInput: No noise keeps it.
    """
    return calibrate.calibrate_noise(
        question.algorithm(), question.privacy(), question.rounds, question.population(), question.dimension
    )


def _epsilon_at(question: Question, noise: float) -> float | None:
    """Return the ε of all rounds at another noise; None if the algorithm refuses it."""
    population = question.population()
    try:
        algorithm = (
            question.algorithm()
            .for_population(population, question.dimension)
            .with_noise(noise)
            .for_population(population)
        )
        return run_spending.spent_epsilon(algorithm, question.privacy(), question.rounds, population)
    except InvalidInput:
        return None


def _noise_for(question: Question, near: float) -> float | None:
    algorithm = _calibrate_near(question, near)
    return None if algorithm is None else noise_multiplier(algorithm)


def _noise_to_signal(question: Question, near: float) -> float | None:
    algorithm = _calibrate_near(question, near)
    return None if algorithm is None else noise_to_signal(algorithm, question.population(), question.dimension)


def _calibrate_near(question: Question, near: float) -> Algorithm | None:
    """Calibrate in a few steps from a guess: `near` is a neighbour's noise over the root of its rounds."""
    population, privacy = question.population(), question.privacy()
    open_noise = question.algorithm().for_population(population, question.dimension)

    def event_at(noise: float) -> PromiseEvent:
        return promise_event(privacy, open_noise.with_noise(noise), question.rounds, population)

    try:
        target, guess = EpsilonTarget(epsilon=question.epsilon, delta=question.delta), near * math.sqrt(question.rounds)
        noise = calibration.calibrate_noise(
            lambda noise: event_at(noise).event, target, event_at(1.0).relation, near=guess
        )
    except InvalidInput:  # no noise is enough
        return None
    return open_noise.with_noise(noise).for_population(population)


def question_traffic(question: Question, algorithm: Algorithm) -> dict[str, int]:
    """Return the bytes that clients receive and send, as `expected_traffic` counts them."""
    params = {"model": torch.empty(question.dimension, device="meta")}
    size = message_bits(algorithm, params)
    return expected_traffic(algorithm, size, question.population(), question.rounds)


def _bytes_by_rounds(question: Question, algorithm: Algorithm) -> dict[str, list[float]]:
    """Return the bytes over rounds with the current bits, which another noise would change by a few."""
    rounds = _nearby_counts("rounds", question)
    traffic = [question_traffic(replace(question, rounds=count), algorithm) for count in rounds]
    totals = {name: [float(sizes[name]) for sizes in traffic] for name in ("client_expected", "all_total")}
    return {"x": [float(count) for count in rounds], **totals}


def _curve(
    xs: Sequence[float], now: float, until: float, value: Callable[[float], float | None]
) -> dict[str, list[float | None]]:
    """Evaluate a curve from `now` outwards while there is time; None, a gap, where there is no finite number."""
    points: dict[float, float | None] = {}
    for x in sorted(xs, key=lambda x: abs(math.log(x / now))):
        if points and monotonic() >= until:
            break
        y = value(x)
        points[x] = y if y is not None and math.isfinite(y) else None
    return {"x": [*sorted(points)], "y": [points[x] for x in sorted(points)]}


def _nearby_counts(name: str, question: Question) -> list[int]:
    """Return seven whole numbers around the slider's own, which is one of them; fewer at an end of its range."""
    now = getattr(question, name)
    near = {round(number) for number in _geometric(now, 7)} | {now}
    return sorted(number for number in near if 1 <= number <= MOST[name])


def _geometric(number: float, points: int) -> Iterator[float]:
    for place in range(points):
        yield number * SPREAD ** (2 * place / (points - 1) - 1)
