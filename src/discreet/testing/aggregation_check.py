"""The contract of an aggregation as a check: the decoded sum is the sum, and encoding makes no row longer."""

import torch
from torch import Tensor

from discreet.algorithms.aggregation import Aggregation
from discreet.params import Params, count_values, flatten, norms, sum_clients, unflatten
from discreet.privacy.skellam import l2_after_rounding
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import RunKey
from discreet.secure_sums.lattice.grid import Grid, Load
from discreet.secure_sums.lattice.lattice_encoding import Encoding
from discreet.testing.part_failure import report_errors, require
from discreet.testing.wrapped_part import wrap_part
from discreet.words import fill

CLIENTS = 4
ROUNDING = 1e-5  # relative, for sums in single precision


def check_aggregation(aggregation: Aggregation, params: Params | None = None) -> list[str]:
    """Check that an aggregation keeps its contract: encode, sum and decode return the sum of the rows.

    That the server of a secure sum learns nothing else is a matter of the engine, and is not checked.

    Args:
        aggregation: The aggregation, ours or a user's own.
        params: A model to try it on; by default a small one.

    Returns:
        What was tried, in sentences.

    Raises:
        PartFailed: The aggregation doesn't keep its contract. The message says what was seen.

    Example:
        >>> from discreet.algorithms.aggregation import Plain
        >>> check_aggregation(Plain())
        ['Encoded, summed and decoded 4 updates: the sum is off by at most 0 in a coordinate.']
    """
    params = params or {"weight": torch.zeros(30, 40), "bias": torch.zeros(40)}
    load = Load(CLIENTS, None, 1.0, 1.0, CLIENTS, "skellam")
    with report_errors("The aggregation"):
        fitted = wrap_part(Aggregation, aggregation).for_sum(count_values(params), load)
        encoding, grid = fitted.encoding(0, params, 1), fitted.grid(1, 1)
        require(
            not fitted.is_secure or (encoding is not None and grid is not None),
            "An aggregation that is secure must sum integers in a ring, and this one has no encoding or no grid.",
            "Declare is_secure = False.",
        )
        _check_zero(fitted, params, encoding)
        check = _check_combination if fitted.needs_each_upload else _check_sum
        worst = max(check(fitted, rows, params, encoding, grid) for rows in _blocks(params))
        _check_traffic(fitted, params)
    return [fill("trial.aggregation", clients=CLIENTS, error=f"{worst:.2g}")]


def _blocks(params: Params) -> list[Params]:
    """Return rows of norm at most 1: random, one-hot, aligned and opposite ones."""
    size = count_values(params)
    random = torch.randn(CLIENTS, size, generator=torch.Generator().manual_seed(0))
    aligned = torch.ones(CLIENTS, size)
    opposite = aligned * torch.tensor([[1.0], [-1.0]]).repeat(CLIENTS // 2, 1)
    one_hot = torch.zeros(CLIENTS, size)
    one_hot[:, size // 3] = 1
    like = next(iter(params.values()))
    return [
        unflatten((rows * (1 - ROUNDING) / rows.norm(dim=1, keepdim=True)).to(like), params)
        for rows in (random, random * 0.01, aligned, opposite, one_hot)
    ]


def _encode(aggregation: Aggregation, rows: Params, encoding: Encoding | None, clients: range) -> Params:
    device = next(iter(rows.values())).device
    streams = RunKey.from_seed(0).rows(0, b"", list(clients), device).for_purpose(Purpose.ENCODE)
    return aggregation.encode(rows, encoding, streams, bounded=True)


def _check_zero(aggregation: Aggregation, params: Params, encoding: Encoding | None) -> None:
    zero = {name: value.new_zeros(CLIENTS, *value.shape) for name, value in params.items()}
    encoded = _encode(aggregation, zero, encoding, range(CLIENTS))
    decoded = aggregation.decode(aggregation.combine(encoded), encoding, params)
    require(not bool(flatten(decoded).any()), "The sum of zero updates must be zero, and it is not.")


def _check_sum(
    aggregation: Aggregation, rows: Params, params: Params, encoding: Encoding | None, grid: Grid | None
) -> float:
    """Refuse a decoded sum that is not the sum up to rounding; return the largest error of a coordinate."""
    encoded = _encode(aggregation, rows, encoding, range(CLIENTS))
    _check_length(encoded, rows, grid)
    for client in range(CLIENTS):
        alone = _encode(aggregation, _row(rows, client), encoding, range(client, client + 1))
        same = all(torch.equal(encoded[name][client], value[0]) for name, value in alone.items())
        require(same, "A client's update is encoded in another way when others are in its block.")
    decoded = aggregation.decode(sum_clients(encoded), encoding, params)
    shapes = {name: value.shape for name, value in decoded.items()} == {
        name: each.shape for name, each in params.items()
    }
    require(shapes, "`decode` must return an update of the whole model.")
    error = float((flatten(decoded).double() - flatten(sum_clients(rows)).double()).abs().max())
    allowed = CLIENTS * (ROUNDING if grid is None else ROUNDING + _rounding_error(encoding, grid))
    require(error <= allowed, f"The decoded sum is off by {error:.3g} in a coordinate, and {allowed:.3g} is allowed.")
    return error


def _check_combination(
    aggregation: Aggregation, rows: Params, params: Params, encoding: Encoding | None, grid: Grid | None
) -> float:
    """Refuse a combination that depends on the clients' order, or that is not the sum of equal updates.

    Returns the largest error of a coordinate of that sum.
    """
    require(not aggregation.is_secure, "An aggregation that is secure can't ask for each upload.")
    encoded = _encode(aggregation, rows, encoding, range(CLIENTS))
    turned = aggregation.combine({name: value.flip(0) for name, value in encoded.items()})
    same = all(torch.equal(turned[name], value) for name, value in aggregation.combine(encoded).items())
    require(same, "`combine` must not depend on the order of the clients.")
    alike = {name: value[:1].expand_as(value) for name, value in encoded.items()}
    decoded = aggregation.decode(aggregation.combine(alike), encoding, params)
    error = float((flatten(decoded).double() - flatten(sum_clients(alike)).double()).abs().max())
    allowed = CLIENTS * ROUNDING
    require(error <= allowed, f"Equal updates must be combined into their sum, and a coordinate is off by {error:.3g}.")
    return error


def _rounding_error(encoding: Encoding | None, grid: Grid) -> float:
    """Return how far rounding to the next integer moves a coordinate; a rotation spreads it over all of them."""
    rotated = encoding is not None and encoding.rotation is not None
    return (grid.dimension**0.5 if rotated else 1.0) / grid.scale


def _check_length(encoded: Params, rows: Params, grid: Grid | None) -> None:
    """Refuse encoded rows that are longer than what noise is priced for."""
    if grid is None:
        length, most = float((norms(encoded) / norms(rows)).max()), 1.0
    else:
        integers = all(value.dtype == torch.int64 for value in encoded.values())
        require(integers, "Updates on a lattice must be encoded as int64.")
        length, most = float(_double_norms(encoded).max()), l2_after_rounding(grid.scale, grid.dimension)
    require(
        length <= most * (1 + ROUNDING),
        f"An encoded update has a norm of {length:.4g}, and noise is priced for {most:.4g}.",
        "Encode so that no norm grows.",
    )


def _check_traffic(aggregation: Aggregation, params: Params) -> None:
    size = count_values(params)
    require(aggregation.coordinates(size) >= size, "`coordinates` must count at least those of the update.")
    dtype = next(iter(params.values())).dtype
    require(aggregation.bits_per_coordinate(dtype) > 0, "`bits_per_coordinate` must be above 0.")


def _row(rows: Params, client: int) -> Params:
    return {name: value[client : client + 1] for name, value in rows.items()}


def _double_norms(rows: Params) -> Tensor:
    return norms({name: value.double() for name, value in rows.items()})
