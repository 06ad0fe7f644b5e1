"""What is tried of an algorithm with parts of a user's own, before it trains. It depends on no client's data."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.declarations import client_parts
from discreet.algorithms.population import Population
from discreet.algorithms.training import Loss
from discreet.algorithms.training.schedules import Schedule
from discreet.contract import CONTRACTS
from discreet.params import Params
from discreet.testing.aggregation_check import check_aggregation
from discreet.testing.mechanism_check import try_mechanism
from discreet.testing.part_failure import PartFailed
from discreet.testing.sampler_check import try_sampler
from discreet.testing.server_optimizer_check import check_schedule, check_server_optimizer
from discreet.testing.sparsifier_check import check_sparsifier
from discreet.testing.trainer_check import try_trainer
from discreet.user_part import UserPart, user_parts


def try_algorithm(
    algorithm: Algorithm, population: Population, loss: Loss, params: Params, inputs: Tensor, targets: Tensor
) -> list[str]:
    """Try an algorithm that has parts of a user's own, on synthetic updates and data.

    Each of the user's parts is checked by itself, on this model and these clients. If clients run one of them, whole
    rounds are played too, through `client_step` and `server_step`: any part may undo what the mechanism bounds.

    Args:
        algorithm: The algorithm with all its noise, and the fields that follow from the population.
        population: Public client sizes.
        loss: Loss of the model on examples.
        params: The model.
        inputs: A batch of inputs, of which only the shape and type are used.
        targets: A batch of targets, of which only the shape and type are used.

    Returns:
        What was tried and measured, in sentences, the same in every run; none if all parts are ours.

    Raises:
        PartFailed: A part doesn't keep its contract. The message says what was seen.
    """
    tried: list[str] = []
    if isinstance(algorithm.sampling, UserPart):
        with name_part(algorithm.sampling):
            tried += try_sampler(algorithm.sampling, population)
    for own in user_parts(algorithm.trainer):
        with name_part(own):
            if own.contract is CONTRACTS[Schedule]:
                tried += check_schedule(own)
            tried += try_trainer(algorithm, population, loss, params, inputs, targets)
    if isinstance(algorithm.sparsifier, UserPart):
        with name_part(algorithm.sparsifier):
            tried += check_sparsifier(algorithm.sparsifier, params)
    if isinstance(algorithm.aggregation, UserPart):
        with name_part(algorithm.aggregation):
            tried += check_aggregation(algorithm.aggregation, params)
    if isinstance(algorithm.server, UserPart):
        with name_part(algorithm.server):
            tried += check_server_optimizer(algorithm.server, params)
    if own_parts := client_parts(algorithm):
        with name_part(*own_parts):
            tried += try_mechanism(algorithm, population, params)
    return tried


@contextmanager
def name_part(*own: UserPart) -> Iterator[None]:
    """Within this context, a failure names the parts that were tried."""
    try:
        yield
    except PartFailed as failure:
        names = " and ".join(part.kind for part in own)
        raise PartFailed(f"Tried with {names}: {failure.problem}", fix=failure.fix) from failure
