"""What is attacked: every private recipe of the catalog, other samplings and noises, and a claim that doesn't hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.claims import paper_claims
from discreet.algorithms.mechanisms import AdaptiveGaussian, Gaussian
from discreet.algorithms.population import Population
from discreet.algorithms.recipes.ddp_fedavg import ddp_fedavg, ddp_fedavg_client
from discreet.algorithms.recipes.registry import RECIPES
from discreet.algorithms.sampling import FixedSize, RoundRobin
from discreet.algorithms.training import GradientDescent
from discreet.audit.round_tester import Effort, ToyTask
from discreet.privacy.release import Person, Release, Unit
from examples import counterexample

CLIENTS = Population(examples=(4, 4, 4, 4))
READERS = Population(examples=(24,) * counterexample.CLIENTS)
SMALL: dict[str, Any] = {"batch_size": 2, "sampling_rate": 0.5, "learning_rate": 1.0}  # in place of an example's values
NOISE = 2.0
EFFORT = Effort(repetitions=100_000, candidates=10, quick_repetitions=1000, generations=0, finalists=1)
LONG_SEARCH = replace(EFFORT, candidates=40, generations=2)  # where the search must find what a proof overlooked
TRAINER = GradientDescent(learning_rate=1.0, iterations=(1,))
PERSONS = ("pfl", "ddp_fedavg", "convex_local")  # the recipes for whose examples a person's rows are tested too
PERSON = Person(column="person", at_most=2)


@dataclass(frozen=True)
class Case:
    """An algorithm to attack.

    Attributes:
        name: Its name on the page.
        algorithm: The algorithm.
        unit: The unit of the claims that are tested; None: as the algorithm claims.
        population: Public client sizes.
        task: The task; None: the default.
        claims: The claims; None: what is certified.
        effort: How much is tried.
    """

    name: str
    algorithm: Algorithm
    unit: Unit | None = None
    population: Population = CLIENTS
    task: ToyTask | None = None
    claims: Sequence[Release] | None = None
    effort: Effort = EFFORT


def list_cases() -> list[Case]:
    """List what is attacked, in the order of the page."""
    return [*_list_recipes(), *_list_variants(), *_list_published()]


def _list_recipes() -> Iterator[Case]:
    for name, recipe in RECIPES.items():
        if not recipe.protects:
            continue
        example = dict(recipe.example)
        algorithm = recipe(**example | {key: value for key, value in SMALL.items() if key in example}).with_noise(NOISE)
        yield Case(f"`{name}`", algorithm)
        if name in PERSONS:
            yield Case(f"`{name}`, two rows of a person", algorithm, unit=PERSON)


def _list_variants() -> Iterator[Case]:
    central = Gaussian(clip_norm=1.0, noise_multiplier=NOISE)
    yield Case(
        "trusted server, cohorts of 2", Algorithm(sampling=FixedSize(cohort=2), trainer=TRAINER, mechanism=central)
    )
    yield Case("trusted server, in turns", Algorithm(sampling=RoundRobin(cohort=2), trainer=TRAINER, mechanism=central))
    yield Case(
        "trusted server, adaptive clip",
        Algorithm(trainer=TRAINER, mechanism=AdaptiveGaussian(clip_norm=1.0, noise_multiplier=NOISE)),
    )
    shared: dict[str, Any] = {"learning_rate": 1.0, "clip_norm": 1.0, "noise_multiplier": NOISE}
    assumed: dict[str, Any] = {"colluding": 1, "dropouts": 1}
    yield Case(
        "`ddp_fedavg_client`, a colluding client and a drop-out", ddp_fedavg_client(batch_size=2, **shared, **assumed)
    )
    yield Case(
        "`ddp_fedavg_client`, discrete Gaussian", ddp_fedavg_client(batch_size=2, noise="discrete_gaussian", **shared)
    )
    yield Case("`ddp_fedavg`, a colluding client and a drop-out", ddp_fedavg(sampling_rate=0.5, **shared, **assumed))


def _list_published() -> Iterator[Case]:
    """Heikkilä's Theorem 4.6: what the paper claims, and what is certified."""
    share = counterexample.SHARE
    algorithm = ddp_fedavg(
        learning_rate=READERS.examples[0],
        clip_norm=counterexample.CLIP,
        sampling_rate=1.0,
        local_steps=counterexample.STEPS,
        gradients="local",
        noise="gaussian",
        noise_multiplier=share,
        as_published=True,
    )
    claims = [claim.release for claim in paper_claims(algorithm.for_population(READERS, 2), 1, READERS)]
    loss = counterexample.Reading(counterexample.beyond(share, 1e-2))
    task = ToyTask({"u": torch.zeros(1), "v": torch.zeros(1)}, loss, input_size=1, targets=(0, 1))
    name = "`ddp_fedavg` as published, task of the counterexample"
    yield Case(f"{name}: Theorem 4.6", algorithm, population=READERS, task=task, claims=claims, effort=LONG_SEARCH)
    yield Case(f"{name}: certified", algorithm, population=READERS, task=task)
