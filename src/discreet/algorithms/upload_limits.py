"""Limits of what the server takes from clients: longer uploads in clear are clipped or refused, longer sums lost.

Guarantee: no upload that an honest client clipped is changed, and one with noise of its own is refused with probability
at most FALSE_ALARM. A sum is judged when it has all its noise. So limits take nothing from a guarantee.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from discreet.algorithms import per_client
from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.honest_upload import FALSE_ALARM, SUM_ALARM, HonestUpload, integer_norm
from discreet.algorithms.population import Population
from discreet.errors import InvalidInput
from discreet.params import Params, count_values, norms, scale
from discreet.privacy.skellam import l2_after_rounding
from discreet.secure_sums.lattice.grid import Load

if TYPE_CHECKING:
    from discreet.algorithms.algorithm import Algorithm


class OversizedUpload(InvalidInput):
    """An upload is longer than an honest client's: the server counts its client as dropped out."""


class TakenUpload(NamedTuple):
    """An upload as the server takes it, and a sentence about what was changed; None if nothing was."""

    row: Params
    problem: str | None


def find_honest_upload(algorithm: "Algorithm", round: int, client: int, population: Population) -> HonestUpload | None:
    """Return how large an honest upload of this client is in this round; None if nothing bounds it."""
    mechanism = per_client.for_client(algorithm.mechanism, client)
    if mechanism.is_private:
        honest = mechanism.honest_upload()
        if honest is None or mechanism.unit == "client":
            return honest
        sums = algorithm.update_sums(round, population)
        vectors = max(sums.max_examples(population.examples[client], FALSE_ALARM), sums.times * sums.parts)
        return honest.scale_update(vectors / math.sqrt(sums.times))
    if algorithm.sparsifier.depends_on_data:
        return None  # it may lengthen an update
    trainer = per_client.for_client(algorithm.trainer.for_population(population), client)
    honest = trainer.honest_upload(round, population.examples[client])
    return honest if honest is None else honest.multiply(algorithm.weights(population)[client])


def take_upload(
    algorithm: "Algorithm", broadcast: Broadcast, client: int, row: Params, population: Population
) -> TakenUpload:
    """Clip an upload that carries no noise of its client's own to what an honest client sends; else return it as it is.

    Args:
        algorithm: The algorithm that runs.
        broadcast: What the client received.
        client: The client.
        row: Its upload, in clear.
        population: Public client sizes.

    Raises:
        OversizedUpload: It carries the client's own noise, and an honest one is as long with a probability of at most
            FALSE_ALARM.
    """
    honest = find_honest_upload(algorithm, broadcast.round, client, population)
    if honest is None:
        return TakenUpload(row, None)
    update = {name: row[name] for name in broadcast.params}
    extra = {name: value for name, value in row.items() if name not in update}
    length, limit = _norm(update, honest.order), honest.limit(count_values(update))
    clamped = {name: value.clamp(-honest.extra, honest.extra) for name, value in extra.items()}
    is_clamped = any(bool((clamped[name] != value).any()) for name, value in extra.items())
    if length <= limit and not is_clamped:
        return TakenUpload(row, None)
    unit = "the clip norm" if algorithm.mechanism.is_private else "the model's own"
    if honest.deviation:
        raise OversizedUpload(
            f"The update has an L{honest.order} norm of {length:.4g} in units of {unit}, and an honest one has more "
            f"than {limit:.4g} with a probability of at most {FALSE_ALARM:g}."
        )
    shortened = update if length <= limit else scale(update, limit / length)
    return TakenUpload(
        shortened | clamped,
        f"the update has an L{honest.order} norm of {length:.4g} in units of {unit} or a flag out of range; no honest "
        f"one has more than {limit:.4g}.",
    )


def sum_limit(load: Load, scale: float, dimension: int) -> float:
    """Return the norm that a sum of honest clients exceeds with probability at most 2·SUM_ALARM, in lattice steps.

    Args:
        load: What the sum carries.
        scale: Lattice steps per unit.
        dimension: Coordinates of the sum.
    """
    length = scale * load.norm
    if load.sums is None:  # each vector is rounded until it is short enough
        signal = load.vectors * l2_after_rounding(length, dimension)
    else:
        signal = load.vectors * length + load.sums * math.sqrt(dimension)
    return signal + integer_norm(load.noise, dimension, scale * load.deviation, SUM_ALARM)


def oversized_sum(
    algorithm: "Algorithm", broadcast: Broadcast, total: Params, contributors: Sequence[int], population: Population
) -> tuple[float, float] | None:
    """Return the norm of a secure sum and its limit, in lattice steps, if honest clients can't have sent it; else None.

    Args:
        algorithm: The algorithm that runs.
        broadcast: What the clients received.
        total: The sum, as integers.
        contributors: The clients in it.
        population: Public client sizes.
    """
    load = algorithm.sum_load(population, contributors) if contributors else None
    if broadcast.encoding is None or load is None:
        return None
    limit = sum_limit(load, broadcast.encoding.scale, count_values(total))
    length = _norm(total, 2)
    return None if length <= limit else (length, limit)


def _norm(row: Params, order: int) -> float:
    return float(norms({name: value[None].double() for name, value in row.items()}, order=order)[0])
