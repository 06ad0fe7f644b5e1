"""Where the sliders stand at first: as an experiment has its numbers."""

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NamedTuple

from discreet.algorithms import per_client
from discreet.algorithms.mechanisms import IntegerNoise, LocalNoise
from discreet.algorithms.noise_to_signal import noise_multiplier, noise_to_signal
from discreet.algorithms.sampling import Everyone, Poisson, RoundRobin
from discreet.algorithms.training.per_round import value_in_round
from discreet.errors import InvalidInput
from discreet.experiment.loop.job import Job
from discreet.experiment.promise import spending
from discreet.params import count_values
from discreet.planning import experiment_plan
from discreet.planning.planner.slider_answer import bytes_of, kept
from discreet.planning.planner.slider_question import LARGEST_DELTA, MOST, OF_EXAMPLES, Mechanism, Question
from discreet.privacy.calibration import PRECISION


class Start(NamedTuple):
    """`note` says where the page's algorithm is not the experiment's own."""

    question: Question
    note: str


def start(job: Job) -> Start:
    mechanism = _mechanism(job)
    privacy, population = job.privacy, job.population
    in_public = mechanism == "gaussian" or (privacy is not None and privacy.against == "public")
    trainer = per_client.worst_case(job.algorithm.trainer)
    cohort = job.algorithm.sampling.expected_cohort(population) / population.clients
    own = getattr(trainer, "sampling_rate", None)
    rate = own if mechanism in OF_EXAMPLES and isinstance(own, float) else cohort
    question = Question(
        mechanism=mechanism,
        view="public" if in_public else "server",
        epsilon=2.0 if privacy is None else privacy.largest_epsilon,
        delta=spending.DEFAULT_DELTA if privacy is None else min(privacy.delta, LARGEST_DELTA),
        clients=min(population.clients, MOST["clients"]),
        sampling_rate=rate,
        rounds=min(job.rounds, MOST["rounds"]),
        local_steps=min(_steps(trainer), MOST["local_steps"]),
        dimension=count_values(job.params),
        examples=min(max(1.0, sum(population.examples) / population.clients), float(MOST["examples"])),
    )
    return Start(question, "" if _promises_the_same(job, question) and _is_the_same(job, question) else NEAREST)


def _mechanism(job: Job) -> Mechanism:
    """The page's own that is nearest to the experiment's."""
    mechanism = job.algorithm.mechanism
    match mechanism:
        case LocalNoise():
            return mechanism.kind
        case IntegerNoise(kind="skellam") if mechanism.unit == "client":
            return "skellam_clients"
        case _ if mechanism.is_private:
            return "skellam" if mechanism.unit == "example" else "gaussian"
        case _:
            return "dp_sgd"


def _promises_the_same(job: Job, question: Question) -> bool:
    """One promise for all clients, of whom none holds another's example."""
    privacy = job.privacy
    return (
        privacy is not None
        and (privacy.unit, privacy.against) == (question.unit, question.view)
        and (privacy.epsilon, privacy.delta) == (question.epsilon, question.delta)
        and job.population.max_multiplicity == 1
    )


def _is_the_same(job: Job, question: Question) -> bool:
    """Whether the sliders say all of the algorithm that decides a number, and the page's numbers are the plan's."""
    theirs = job.algorithm
    try:
        ours = kept(question)
    except InvalidInput:
        return False
    names = ["sparsifier", "mechanism", "aggregation", *(["trainer"] if question.mechanism in OF_EXAMPLES else [])]
    if not isinstance(theirs.sampling, Everyone | DRAWN.get(question.mechanism, Everyone)):
        return False
    if not all(_alike(getattr(theirs, name), getattr(ours, name)) for name in names):
        return False
    size, sent = question.dimension, experiment_plan.sent(job, job.rounds)
    pairs = (
        (noise_multiplier(theirs), noise_multiplier(ours)),
        (noise_to_signal(theirs, job.population, size), noise_to_signal(ours, question.population(), size)),
        *((sent[name], number) for name, number in bytes_of(question, ours).items()),
    )
    return all(math.isclose(their or 0, our or 0, rel_tol=2 * PRECISION) for their, our in pairs)


def _alike(theirs: Any, ours: Any) -> bool:
    """But for what changes no number that is asked for, and what is compared by its numbers."""
    named = (each.name for each in fields(ours) if each.name not in FREE)
    return type(theirs) is type(ours) and all(getattr(theirs, name) == getattr(ours, name) for name in named)


def _steps(trainer: object) -> int:
    found = getattr(trainer, "steps", None) or getattr(trainer, "iterations", None) or 1
    return value_in_round(found, 0) if isinstance(found, tuple) else int(found)


DRAWN: Mapping[Mechanism, type] = {  # how a cohort is found, where it isn't everyone
    "gaussian": Poisson,
    "local_gaussian": RoundRobin,
    "local_laplace": RoundRobin,
    "skellam_clients": RoundRobin,
}
FREE = frozenset(
    {"learning_rate", "clip_norm", "noise_multiplier", "schedule", "weight_decay", "automatic", "piece"}
    | {"expected_batch", "scale", "seed"}
)
NEAREST = (
    "The sliders can't say all that the experiment does: noise that is given, clients who differ, or another "
    "algorithm. What is shown is the nearest that they can; `discreet plan` without --interactive has the experiment's "
    "own numbers."
)
