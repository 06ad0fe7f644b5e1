"""What a run's plan says of each client before anything is trained, and what its first upload takes in a code."""

from typing import Any

import torch
from torch import Tensor

from discreet.algorithms import per_client
from discreet.algorithms.message_sizes import message_bits
from discreet.algorithms.training import MinibatchDp
from discreet.experiment.comparison.cells import CellRun
from discreet.experiment.comparison.comparison import DataCache
from discreet.experiment.comparison.comparison_results import Result
from discreet.experiment.job import Job
from discreet.experiment.loop import run_guarantees
from discreet.params import count_values
from experiments.tradeoffs.rate import Clipping, Upload

NAME = "plan"


def key(run: CellRun) -> str:
    return f"{run.key}-{NAME}"


def plan_row(run: CellRun, data: DataCache) -> Result:
    """One line of results, of a row's first learning rate; `code` is in bits a coordinate."""
    job = data.build_job(run)
    return {
        "key": key(run),
        "name": NAME,
        "of": run.cell.name,
        "what": run.cell.swept["what"],
        "seed": run.seed,
        "coordinates": count_values(job.params),
        "examples": list(job.population.examples),
        "sampling_rate": _trainer_values(job, "sampling_rate"),
        "noise_multiplier": _trainer_values(job, "noise_multiplier"),
        "rounds": [job.round_limits.get(client, job.rounds) for client in range(job.population.clients)],
        "certified": certified_epsilons(job),
        "sent": message_bits(job.algorithm, job.params).up / count_values(job.params),
        "code": [upload.code_length(sent) for upload, sent in zip(uploads(job), first_gradients(job), strict=True)],
    }


def certified_epsilons(job: Job) -> list[float]:
    """Each client's own ε after the whole run, as its card says."""
    assert job.privacy is not None
    promised, everyone = (job.privacy.unit, job.privacy.against), range(job.population.clients)
    cards = run_guarantees.certify_run(job.terms, job.rounds, None, shared=False)
    about = [each for each in cards if (each.unit, each.view) == promised]
    by = {client: each.epsilon for each in about for client in each.clients or everyone}
    return [by[client] for client in everyone]


def uploads(job: Job) -> list[Upload]:
    """What is public of each client's."""
    clipping: Clipping = "minibatch" if isinstance(job.algorithm.trainer, MinibatchDp) else "example"
    each = zip(
        _trainer_values(job, "noise_multiplier"),
        _trainer_values(job, "sampling_rate"),
        job.population.examples,
        strict=True,
    )
    return [
        Upload.from_settings(clipping, count_values(job.params), noise, rate, examples)
        for noise, rate, examples in each
    ]


def first_gradients(job: Job) -> list[Tensor]:
    """What each client sends in the first round, without its weight and the learning rate; in units of the clip."""
    simulation = job.simulation
    clients = list(range(job.population.clients))
    sent = simulation.step(job.algorithm.broadcast(job.algorithm.init(job.params), 0), clients).rows
    moves = torch.cat([value.reshape(len(clients), -1) for value in sent.values()], dim=1).double()
    factors = simulation.weights(clients) * getattr(job.algorithm.trainer, "learning_rate", 1.0)
    clips = torch.tensor(_trainer_values(job, "clip_norm"), dtype=torch.float64)
    return list(-moves / (factors * clips)[:, None])


def _trainer_values(job: Job, name: str) -> list[float]:
    """The trainer's number of this name, for each client."""
    number: Any = getattr(job.algorithm.trainer, name)
    return list(per_client.repeat_value(number, job.population.clients))
