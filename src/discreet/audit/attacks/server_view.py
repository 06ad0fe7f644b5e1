"""What the server sees of one client in one round: its update in clear, a sum, or what an experiment's clients send."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.mechanisms import DistributedGaussian, IntegerNoise
from discreet.algorithms.training import GradientDescent
from discreet.audit.attacks.stand_in_examples import Victims
from discreet.data.federation import Federation
from discreet.engines.embedded import EmbeddedEngine
from discreet.engines.engine import BlockSum, Simulation
from discreet.experiment.job import Job
from discreet.params import Params, round_to_types, scale
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.wording import round_up
from discreet.randomness.streams import RunKey

RAW = "raw FedAvg"
SUMMED_CLIENTS = 100  # the most whose raw updates are added up
ONE_GRADIENT = Algorithm(trainer=GradientDescent(learning_rate=1.0, iterations=(1,)))


@dataclass(frozen=True)
class ServerView:
    """What a server sees of the first client in the first round.

    Attributes:
        name: Its name in pictures.
        algorithm: What the clients do.
        clients: How many of them take part.
        sees_sum: Whether the server sees only the sum of what they send.
    """

    name: str
    algorithm: Algorithm
    clients: int
    sees_sum: bool

    def observe(self, job: Job, victims: Victims, per_client: int, key: RunKey) -> Params:
        """Return what the server sees, as a gradient: the update times −1. Its scale is the algorithm's.

        Args:
            job: The experiment, whose first model is broadcast.
            victims: Examples, of which each client holds some: the first client the first ones.
            per_client: How many examples a client holds. They start again where there are too few.
            key: Where the noise comes from.
        """
        device, places = job.device, torch.arange(self.clients * per_client) % len(victims.inputs)
        inputs, targets = (
            values[places].to(device, like.dtype)
            for values, like in ((victims.inputs, job.data.inputs), (victims.targets, job.data.targets))
        )
        data = Federation(inputs, targets, (per_client,) * self.clients)
        algorithm = replace(self.algorithm, weighting="uniform")
        simulation = Simulation(algorithm, data, job.model.loss, key, job.public_data, precision=job.settings.precision)
        broadcast = algorithm.broadcast(algorithm.init(job.params), 0, simulation.public_update)
        sent = EmbeddedEngine(simulation).client_steps(broadcast, list(range(self.clients)))
        if self.sees_sum:
            total = BlockSum.from_blocks(sent).rows
            assert total is not None
            seen = algorithm.aggregation.decode(total, broadcast.encoding, job.params)
        else:
            block, uploads = next(iter(sent))
            seen = {name: value[block.index(0)] for name, value in uploads.rows.items() if name in job.params}
        update = algorithm.sparsifier.expand(seen, broadcast.announcement)
        return scale(round_to_types(update, job.params), -1.0)


def server_views(job: Job, guarantee: Guarantee | None) -> Sequence[ServerView]:
    """Return three views: one raw update, a sum of raw updates, and what this experiment's server sees.

    In each, a client takes one step on all its examples, which leaves the server the most to see; sums, clips and
    noise are the experiment's own.
    """
    summed = min(job.population.clients, SUMMED_CLIENTS)
    return [
        ServerView(RAW, ONE_GRADIENT, 1, sees_sum=False),
        ServerView(f"a secure sum of {summed} clients", ONE_GRADIENT, summed, sees_sum=True),
        own_view(job, guarantee),
    ]


def own_view(job: Job, guarantee: Guarantee | None) -> ServerView:
    """Return what the server of this experiment sees: a client's upload, or the sum if noise or masks need it."""
    algorithm = job.algorithm
    trainer = algorithm.trainer.with_example_rate(1.0) or algorithm.trainer
    trainer = (trainer.with_local_work(1) or trainer).for_population(job.population)
    shares = isinstance(algorithm.mechanism, DistributedGaussian | IntegerNoise)
    sees_sum = algorithm.aggregation.is_secure or shares
    name = "this experiment" if guarantee is None else f"this experiment, ε = {round_up(guarantee.epsilon)}"
    clients = job.population.clients if sees_sum else 1
    return ServerView(name, replace(algorithm, trainer=trainer, standardisation=None), clients, sees_sum)
