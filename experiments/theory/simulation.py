"""One run of a case: the project's own recipe and engine, and how far its model ends from the best one."""

import torch
from torch import nn

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.noise_to_signal import noise_multiplier
from discreet.algorithms.recipes.ldp_fedavg import ldp_fedavg
from discreet.algorithms.training.schedules import Harmonic
from discreet.data.tasks.from_arrays import clients_from_arrays
from discreet.experiment.comparison.comparison_results import Result
from discreet.experiment.configuration.run_settings import Settings
from discreet.experiment.job import Job
from discreet.experiment.loop import job_builder
from discreet.experiment.promise.promise import Privacy
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import RunKey
from experiments.theory.cases import PARAMETERS, WORLDS, Case, world_constants

WEIGHT = "weight"  # of the one layer


def run(case: Case, seed: int) -> Result:
    """The squared distance to the best model, and whether gradients stayed within what the theorem assumes.

    Gradients are looked at where a round starts; on a client's own way down its quadratic loss they only shrink.
    """
    ready, found = build_case_job(case, seed), world_constants(case.world)
    engine = ready.build_engine(None)
    simulation = engine.simulation
    algorithm, state = ready.algorithm, ready.algorithm.init(ready.params)
    clip, order = case.setting.clip_norm, 1 if case.kind == "laplace" else 2
    steepest, cut, joined = 0.0, 0, 0
    for round in range(case.rounds):
        broadcast = algorithm.broadcast(state, round)
        cohort = algorithm.sampling.sample(ready.population, round, ready.key.generator(Purpose.SAMPLING, round))
        gradients = found.losses.gradients(broadcast.params[WEIGHT][0])
        steepest = max(steepest, float(gradients.norm(dim=1).max()))
        own = gradients[deal_turns(case, seed)[cohort]]
        cut += int((own.norm(p=order, dim=1) > clip).sum())
        joined += len(cohort)
        total = engine.gather(broadcast, cohort).total
        noise = simulation.rows(broadcast, [-1]).for_purpose(Purpose.SERVER)
        state = algorithm.server_step(state, broadcast, total, len(cohort), ready.population, noise)
    return {
        "key": case.key(seed),
        "error": float((state.params[WEIGHT][0] - found.best).square().sum()),
        "steepest": steepest,
        "cut": cut / joined,
        "noise_multiplier": noise_multiplier(algorithm),
    }


def build_case_job(case: Case, seed: int) -> Job:
    """Ready to run: clients in this seed's order, and noise from the promise of a client's ε against the server."""
    key, world = RunKey.from_seed(seed), WORLDS[case.world]
    data = world.data
    rows = torch.arange(len(data.targets)).reshape(world.clients, -1)[deal_turns(case, seed)].flatten()
    task = clients_from_arrays(data.inputs[rows], data.targets[rows], sizes=data.sizes, name="synthetic")
    layer = nn.Linear(PARAMETERS, 1, bias=False)
    nn.init.zeros_(layer.weight)
    return job_builder.build_job_from_objects(
        task,
        layer,
        {"loss": None, "metric": None},
        key=key,
        algorithm=recipe(case),
        privacy=Privacy(unit="client", against="server", epsilon=case.epsilon, delta=case.delta),
        settings=Settings(rounds=case.rounds, seed=seed, dtype="float64", device="cpu"),
    )


def recipe(case: Case) -> Algorithm:
    """Fu et al.'s algorithm with the learning rate of Theorem 3: η_k = (2/μ)/(k + γ)."""
    setting = case.setting
    return ldp_fedavg(
        learning_rate=2 / setting.constants.convexity,
        gradient_bound=setting.clip_norm,
        local_iterations=case.local,
        total_iterations=case.total,
        noise=case.kind,
        cohort=setting.cohort,
        schedule=Harmonic(gamma=setting.gamma(case.local)),
    )


def deal_turns(case: Case, seed: int) -> torch.Tensor:
    """The order in which clients take their turns: random, and fixed for the run."""
    return torch.randperm(WORLDS[case.world].clients, generator=RunKey.from_seed(seed).generator(Purpose.TURNS))
