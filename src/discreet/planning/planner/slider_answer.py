"""The planner's answer: numbers and curves for one position of the sliders, by the accountants that certify a run."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from time import monotonic
from typing import Any

from discreet.algorithms.noise_to_signal import noise_multiplier, noise_to_signal
from discreet.errors import InvalidInput
from discreet.experiment.promise import calibrate, run_spending
from discreet.experiment.terms import Terms
from discreet.planning.experiment_plan import certify_plan, explain_bound, plan_numbers, state_bound
from discreet.planning.other_promises import open_noise
from discreet.planning.planner.slider_question import MOST, Question
from discreet.planning.planner.slider_start import StartPosition
from discreet.planning.planner.slider_terms import open_terms, slider_terms
from discreet.planning.traffic import planned_traffic
from discreet.privacy import calibration

SPREAD = 16.0  # a curve goes from a sixteenth of the current number to sixteen times it


@lru_cache(maxsize=256)
def answer_question(start: StartPosition, question: Question, patience: float = math.inf) -> dict[str, Any]:
    """Return the answer as plain data: the numbers of `discreet plan` at this position, and curves around them.

    If no noise keeps the promise, or the algorithm can't make it, `reason` says why, and only bytes are known.

    Args:
        start: The experiment, and where the sliders start.
        question: The position of the sliders.
        patience: Seconds after which curves get no more points: they are shorter then, and still pass through the
            current number.
    """
    until = monotonic() + patience
    try:
        terms = slider_terms(start, question)
        cards = certify_plan(terms)
    except InvalidInput as refusal:
        return {"reason": refusal.problem, **_known_bytes(start, question)}
    bound, sentence = (state_bound(cards[0]), explain_bound(cards[0])) if cards else ("", "")
    words = {"reason": "" if cards else NO_PRIVACY, "bound": bound, "sentence": sentence}
    answer = {**words, **plan_numbers(terms, cards)}
    return {**answer, "curves": _curves(start, question, terms, answer, until)}


def _known_bytes(start: StartPosition, question: Question) -> dict[str, Any]:
    """Return the bytes of a plan whose noise is not known; nothing if the algorithm can't be built."""
    try:
        terms = open_terms(start, question)
    except InvalidInput:
        return {"bytes": None, "curves": {}}
    return {"bytes": planned_traffic(terms, terms.rounds), "curves": {"bytes": _bytes_by_rounds(terms, question)}}


def _curves(
    start: StartPosition, question: Question, terms: Terms, answer: Mapping[str, Any], until: float
) -> dict[str, Any]:
    """Return the curves; those of the noise only if it is one number that a promise can decide."""
    noise, curves = answer["noise_multiplier"], {"bytes": _bytes_by_rounds(terms, question)}
    if noise is None or answer["epsilon"] is None:
        return curves
    noises = [other for other in _geometric(noise, 11) if other >= calibration.LEAST]
    near = noise / math.sqrt(question.rounds)

    def noise_for(count: float) -> float | None:
        other = _calibrate_near(start, replace(question, rounds=int(count)), near)
        return None if other is None else noise_multiplier(other.algorithm)

    def ratio_for(count: float) -> float | None:
        other = _calibrate_near(start, replace(question, clients=int(count)), near)
        return None if other is None else noise_to_signal(other.algorithm, other.population, question.dimension)

    rounds, clients = _nearby_counts("rounds", question), _nearby_counts("clients", question)
    return {
        "epsilon": _curve(noises, noise, until, lambda x: _epsilon_at(terms, x), answer["epsilon"]),
        "noise": _curve(rounds, question.rounds, until, noise_for, noise),
        "noise_to_signal": _curve(clients, question.clients, until, ratio_for, answer["noise_to_signal"]),
        **curves,
    }


def _epsilon_at(terms: Terms, noise: float) -> float | None:
    """Return the ε of all rounds at another noise; None if the algorithm refuses it."""
    algorithm = open_noise(terms.algorithm)
    if algorithm is None:
        return None
    try:
        noisy = algorithm.with_noise(noise).for_population(terms.population)
        return run_spending.spent_epsilon(noisy, terms.privacy, terms.rounds, terms.population)
    except InvalidInput:
        return None


def _calibrate_near(start: StartPosition, question: Question, near: float) -> Terms | None:
    """Calibrate in a few steps from a guess: `near` is a neighbour's noise over the root of its rounds."""
    try:
        terms = open_terms(start, question)
        wanted = terms.data.standardisation if terms.settings.engine.is_simulated else None
        algorithm = calibrate.calibrate_noise(
            replace(terms.algorithm, standardisation=wanted),
            terms.privacy,
            terms.rounds,
            terms.population,
            terms.parameters,
            near=near * math.sqrt(question.rounds),
        )
    except InvalidInput:  # no noise is enough
        return None
    return replace(terms, algorithm=algorithm)


def _bytes_by_rounds(terms: Terms, question: Question) -> dict[str, list[float]]:
    """Return the bytes over rounds with the current bits, which another noise would change by a few."""
    rounds = _nearby_counts("rounds", question)
    traffic = [planned_traffic(terms, count) or {} for count in rounds]
    totals = {name: [float(sizes[name]) for sizes in traffic] for name in ("client_expected", "all_total")}
    return {"x": [float(count) for count in rounds], **totals}


def _curve(
    xs: Sequence[float], now: float, until: float, value: Callable[[float], float | None], current: float | None
) -> dict[str, list[float | None]]:
    """Evaluate a curve from `now`, where it has the current value, outwards while there is time.

    None, a gap, where there is no finite number.
    """
    points: dict[float, float | None] = {now: current}
    for x in sorted(set(xs) - {now}, key=lambda x: abs(math.log(x / now))):
        if monotonic() >= until:
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


NO_PRIVACY = (
    "No privacy: this experiment adds no noise, or none that its parts declare, so nothing is promised. Choose a "
    "mechanism to see what privacy would cost."
)
