"""The terms at one position of the sliders: those of the experiment, changed only where a slider was moved."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.message_sizes import message_bits
from discreet.algorithms.population import Population
from discreet.data.data_facts import DataFacts
from discreet.errors import InvalidInput
from discreet.experiment.promise.promise import Privacy
from discreet.experiment.terms import ModelSize, Terms
from discreet.experiment.terms_builder import calibrate_algorithm
from discreet.planning.planner.moved_settings import (
    pick_clients,
    pick_settings,
    pick_values,
    set_client_rate,
    set_example_rate,
    set_local_steps,
)
from discreet.planning.planner.slider_question import EXAMPLE_MECHANISMS, Question
from discreet.planning.planner.slider_start import StartPosition, client_rate, example_rate, mean_size
from discreet.privacy.release import Person, Unit

ELEMENT_TYPES = {2: torch.float16, 4: torch.float32, 8: torch.float64}  # by bytes


def slider_terms(start: StartPosition, question: Question) -> Terms:
    """Return the terms with the least noise that keeps the promise of the sliders; at the start, the experiment's own.

    Raises:
        InvalidInput: No noise keeps it, or the algorithm can't make this promise.
    """
    return start.terms if start.keeps_all(question) else calibrate_terms(start, open_terms(start, question))


def open_terms(start: StartPosition, question: Question) -> Terms:
    """Return the terms before their noise is computed.

    Raises:
        InvalidInput: The experiment's algorithm has no noise that a promise could decide, or no such settings.
    """
    picked = pick_clients(start.terms.population.examples, question.clients)
    population = _population(start, question, picked)
    terms = replace(
        start.terms,
        settings=replace(start.terms.settings, rounds=question.rounds),
        algorithm=_open_algorithm(start, question, picked),
        privacy=_promise(start, question, picked),
        population=population,
        data=_data_facts(start.terms, population),
    )
    return _with_size(start, terms, question.dimension)


def calibrate_terms(start: StartPosition, terms: Terms) -> Terms:
    """Return the terms with the least noise that keeps their promise, as for an experiment's file."""
    algorithm = calibrate_algorithm(
        terms.data, terms.algorithm, terms.privacy, terms.settings, terms.population, terms.parameters
    )
    assert terms.parameters is not None
    return _with_size(start, replace(terms, algorithm=algorithm), terms.parameters)


def _with_size(start: StartPosition, terms: Terms, parameters: int) -> Terms:
    """Return the terms with a model of so many parameters, in the precision of the experiment's model."""
    own = start.terms.size
    assert own is not None
    kind = ELEMENT_TYPES.get(own.bits.down // (8 * own.parameters), torch.float32)
    bits = message_bits(terms.algorithm, {"model": torch.empty(parameters, dtype=kind, device="meta")})
    return replace(terms, size=ModelSize(parameters, bits))


def _population(start: StartPosition, question: Question, picked: Sequence[int]) -> Population:
    """Return as many clients as the slider says, whose sizes are in the proportions of the experiment's."""
    own = start.terms.population
    if start.keeps(question, "clients", "examples"):
        return own
    sizes = pick_values(own.examples, picked)
    wanted = mean_size(start.terms) if start.keeps(question, "examples") else float(question.examples)
    factor = wanted * len(sizes) / max(1, sum(sizes))
    examples = tuple(max(1, round(factor * size)) if size else 0 for size in sizes)
    return replace(own, examples=examples, max_multiplicity=min(own.max_multiplicity, question.clients))


def _data_facts(terms: Terms, population: Population) -> DataFacts:
    """Return the facts about the data for other clients: distinct examples stay the same share of all."""
    distinct = terms.data.distinct_examples
    if distinct is None:
        return terms.data
    share = sum(population.examples) / max(1, sum(terms.population.examples))
    return replace(terms.data, distinct_examples=round(distinct * share))


def _promise(start: StartPosition, question: Question, picked: Sequence[int]) -> Privacy:
    own = start.terms.privacy
    epsilon: float | tuple[float, ...] = question.epsilon
    if own is not None and start.keeps(question, "epsilon"):
        epsilon = pick_values(own.epsilon, picked)
    delta = own.delta if own is not None and start.keeps(question, "delta") else question.delta
    return Privacy(unit=_unit(start, question), against=question.view, epsilon=epsilon, delta=delta)


def _unit(start: StartPosition, question: Question) -> Unit:
    """Return the unit of the experiment; for a recipe of the page the one that it protects."""
    own = start.terms.privacy
    if question.mechanism == "experiment":
        if own is not None:
            return own.unit
        return "client" if example_rate(start.terms) is None else "example"
    if question.mechanism not in EXAMPLE_MECHANISMS:
        return "client"
    return own.unit if own is not None and isinstance(own.unit, Person) else "example"


def _open_algorithm(start: StartPosition, question: Question, picked: Sequence[int]) -> Algorithm:
    """Return the page's recipe, or the experiment's algorithm with the settings of the sliders that were moved."""
    if question.mechanism != "experiment":
        return question.recipe()
    algorithm = start.open_algorithm
    if algorithm is None:
        raise InvalidInput(NO_OPEN_NOISE)
    trainer: Any = pick_settings(algorithm.trainer, picked)
    sampling: Any = algorithm.sampling
    of_examples = example_rate(start.terms) is not None
    if not start.keeps(question, "local_steps"):
        trainer = set_local_steps(trainer, question.local_steps)
    if of_examples and not start.keeps(question, "sampling_rate"):
        trainer = set_example_rate(trainer, question.sampling_rate)
    if not start.keeps(question, "clients") or not (of_examples or start.keeps(question, "sampling_rate")):
        share = client_rate(start.terms) if of_examples else question.sampling_rate
        sampling = set_client_rate(algorithm, share, question.clients)
    mechanism: Any = pick_settings(algorithm.mechanism, picked)
    return replace(algorithm, trainer=trainer, mechanism=mechanism, sampling=sampling)


NO_OPEN_NOISE = (
    "The experiment has no noise, or more than one, so its promise doesn't decide how much. Choose a mechanism to see "
    "what privacy would cost."
)
