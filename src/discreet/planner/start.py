"""Where the sliders stand at first: as an experiment has its numbers."""

from collections.abc import Mapping
from typing import NamedTuple

from discreet import per_client
from discreet.experiment import keeping
from discreet.experiment.job import Job
from discreet.mechanisms import Gaussian, IntegerNoise, LocalNoise
from discreet.params import count
from discreet.planner.question import MOST, OF_EXAMPLES, Mechanism, Question
from discreet.sampling import Everyone, Poisson, RoundRobin
from discreet.training import BroadcastGradients, DpSgd
from discreet.training.per_round import at


class Start(NamedTuple):
    """`note` says where the page's algorithm is not the experiment's own."""

    question: Question
    note: str


def start(job: Job) -> Start:
    mechanism, exact = _mechanism(job)
    privacy, population = job.privacy, job.population
    in_public = mechanism == "gaussian" or (privacy is not None and privacy.against == "public")
    trainer = per_client.worst(job.algorithm.trainer)
    cohort = job.algorithm.sampling.expected_cohort(population) / population.clients
    own = getattr(trainer, "sampling_rate", None)
    rate = own if mechanism in OF_EXAMPLES and isinstance(own, float) else cohort
    question = Question(
        mechanism=mechanism,
        view="public" if in_public else "server",
        epsilon=2.0 if privacy is None else privacy.most,
        delta=keeping.DELTA if privacy is None else privacy.delta,
        clients=min(population.clients, MOST["clients"]),
        sampling_rate=rate,
        rounds=min(job.rounds, MOST["rounds"]),
        local_steps=min(_steps(trainer), MOST["local_steps"]),
        dimension=count(job.params),
        examples=max(1, round(sum(population.examples) / population.clients)),
    )
    differ = per_client.differing(job.algorithm.trainer) or per_client.differing(job.algorithm.mechanism)
    alike = max(population.examples) <= 1.05 * min(population.examples) and not differ
    exact = exact and isinstance(job.algorithm.sampling, Everyone | DRAWN.get(mechanism, Everyone))
    return Start(question, "" if exact and alike else NEAREST)


def _mechanism(job: Job) -> tuple[Mechanism, bool]:
    """The page's own that is nearest to the experiment's, and whether it is the same."""
    mechanism, trainer = job.algorithm.mechanism, job.algorithm.trainer
    match mechanism:
        case Gaussian():
            return "gaussian", True
        case LocalNoise():
            return mechanism.kind, True
        case IntegerNoise(kind="skellam") if mechanism.unit == "client":
            return "skellam_clients", not (mechanism.colluding or mechanism.dropouts)
        case IntegerNoise(kind="skellam"):
            exact = isinstance(trainer, BroadcastGradients) and not (mechanism.colluding or mechanism.dropouts)
            return "skellam", exact
        case _ if mechanism.private:
            return ("skellam" if mechanism.unit == "example" else "gaussian"), False
        case _:
            return "dp_sgd", isinstance(trainer, DpSgd)


def _steps(trainer: object) -> int:
    found = getattr(trainer, "steps", None) or getattr(trainer, "iterations", None) or 1
    return at(found, 0) if isinstance(found, tuple) else int(found)


DRAWN: Mapping[Mechanism, type] = {  # how a cohort is found, where it isn't everyone
    "gaussian": Poisson,
    "local_gaussian": RoundRobin,
    "local_laplace": RoundRobin,
    "skellam_clients": RoundRobin,
}
NEAREST = (
    "The sliders can't say all that the experiment does: clients who differ, or another algorithm. What is shown is "
    "the nearest that they can; `discreet plan` without --interactive has the experiment's own numbers."
)
