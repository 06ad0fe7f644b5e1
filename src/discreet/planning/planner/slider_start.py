"""The planner's start: the sliders at an experiment's own numbers."""

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NamedTuple

from discreet.algorithms import per_client
from discreet.algorithms.noise_to_signal import noise_multiplier, noise_to_signal
from discreet.algorithms.sampling import Everyone, Poisson, RoundRobin
from discreet.algorithms.training.per_round import value_in_round
from discreet.errors import InvalidInput
from discreet.experiment.promise import run_spending
from discreet.experiment.terms import Terms
from discreet.planning.planner.slider_answer import calibrate_algorithm, question_traffic
from discreet.planning.planner.slider_question import EXAMPLE_MECHANISMS, LARGEST_DELTA, MOST, Mechanism, Question
from discreet.planning.traffic import planned_traffic
from discreet.privacy.calibration import PRECISION


class StartPosition(NamedTuple):
    """The first question, and a note if the sliders can't express the experiment exactly."""

    question: Question
    note: str


def start_position(terms: Terms) -> StartPosition:
    """Find the position of the sliders that is nearest to the experiment.

    Raises:
        InvalidInput: The model's size is not known.
    """
    if terms.parameters is None:
        raise InvalidInput(f"The page needs the model's size. {terms.unknown[0]}")
    mechanism = _nearest_mechanism(terms)
    privacy, population = terms.privacy, terms.population
    in_public = mechanism == "gaussian" or (privacy is not None and privacy.against == "public")
    trainer = per_client.worst_case(terms.algorithm.trainer)
    cohort = terms.algorithm.sampling.expected_cohort(population) / population.clients
    own = getattr(trainer, "sampling_rate", None)
    rate = own if mechanism in EXAMPLE_MECHANISMS and isinstance(own, float) else cohort
    question = Question(
        mechanism=mechanism,
        view="public" if in_public else "server",
        epsilon=2.0 if privacy is None else privacy.largest_epsilon,
        delta=run_spending.DEFAULT_DELTA if privacy is None else min(privacy.delta, LARGEST_DELTA),
        clients=min(population.clients, MOST["clients"]),
        sampling_rate=rate,
        rounds=min(terms.rounds, MOST["rounds"]),
        local_steps=min(_first_steps(trainer), MOST["local_steps"]),
        dimension=terms.parameters,
        examples=min(max(1.0, sum(population.examples) / population.clients), float(MOST["examples"])),
    )
    return StartPosition(
        question, "" if _is_same_promise(terms, question) and _has_same_numbers(terms, question) else NEAREST_NOTE
    )


def _nearest_mechanism(terms: Terms) -> Mechanism:
    """Return the page's mechanism that is nearest to the experiment's."""
    mechanism = terms.algorithm.mechanism
    integers = mechanism.integer_shares
    if mechanism.is_local:
        return "local_laplace" if mechanism.norm_order == 1 else "local_gaussian"
    if not mechanism.is_private:
        return "dp_sgd"
    if mechanism.unit == "example":
        return "skellam"
    return "gaussian" if integers is None or integers.noise != "skellam" else "skellam_clients"


def _is_same_promise(terms: Terms, question: Question) -> bool:
    """Return whether there is one promise for all clients, and no example is held by two of them."""
    privacy = terms.privacy
    return (
        privacy is not None
        and (privacy.unit, privacy.against) == (question.unit, question.view)
        and (privacy.epsilon, privacy.delta) == (question.epsilon, question.delta)
        and terms.population.max_multiplicity == 1
    )


def _has_same_numbers(terms: Terms, question: Question) -> bool:
    """Return whether the sliders express all that decides a number, and the page's numbers equal the plan's."""
    theirs = terms.algorithm
    try:
        ours = calibrate_algorithm(question)
    except InvalidInput:
        return False
    names = [
        "sparsifier",
        "mechanism",
        "aggregation",
        *(["trainer"] if question.mechanism in EXAMPLE_MECHANISMS else []),
    ]
    if not isinstance(theirs.sampling, Everyone | COHORT_SAMPLING.get(question.mechanism, Everyone)):
        return False
    if not all(_is_equivalent(getattr(theirs, name), getattr(ours, name)) for name in names):
        return False
    size, sent = question.dimension, planned_traffic(terms, terms.rounds) or {}
    pairs = (
        (noise_multiplier(theirs), noise_multiplier(ours)),
        (noise_to_signal(theirs, terms.population, size), noise_to_signal(ours, question.population(), size)),
        *((sent[name], number) for name, number in question_traffic(question, ours).items()),
    )
    return all(math.isclose(their or 0, our or 0, rel_tol=2 * PRECISION) for their, our in pairs)


def _is_equivalent(theirs: Any, ours: Any) -> bool:
    """Compare two parts, without the fields that change no number of the page or are compared by their numbers."""
    names = (field.name for field in fields(ours) if field.name not in IGNORED_FIELDS)
    return type(theirs) is type(ours) and all(getattr(theirs, name) == getattr(ours, name) for name in names)


def _first_steps(trainer: object) -> int:
    steps = getattr(trainer, "steps", None) or getattr(trainer, "iterations", None) or 1
    return value_in_round(steps, 0) if isinstance(steps, tuple) else int(steps)


COHORT_SAMPLING: Mapping[Mechanism, type] = {  # how a cohort is chosen, where not all clients join
    "gaussian": Poisson,
    "local_gaussian": RoundRobin,
    "local_laplace": RoundRobin,
    "skellam_clients": RoundRobin,
}
IGNORED_FIELDS = frozenset(
    {"learning_rate", "clip_norm", "noise_multiplier", "schedule", "weight_decay", "automatic", "piece"}
    | {"expected_batch", "scale", "seed"}
)
NEAREST_NOTE = (
    "The sliders can't express all of this experiment: it has a given noise, clients that differ, or another "
    "algorithm. The page shows the nearest plan; `discreet plan` without --interactive has the experiment's own "
    "numbers."
)
