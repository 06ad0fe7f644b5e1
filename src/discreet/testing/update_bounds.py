"""How far one unit moves what is uploaded and what is released, for updates that a careless bound lets through."""

from dataclasses import dataclass

import torch
from torch import Tensor

from discreet.params import norms, unflatten
from discreet.testing.part_failure import report_errors, require
from discreet.testing.trial_round import RoundResult, TrialRound

CLIENTS = 3  # in a round whose sum is compared with and without one client's update
RUNS = 40  # in which a noisy state that is cut off at its ends hardly ever stays the same: 0.7^40 is 6e-7
ROUNDING = 1e-6  # by how much a norm may exceed its bound in single precision
ROWS_ALONE = "Treat each row by itself: rows are clients, and must not see each other."
STREAMS = "Draw all noise from `rows` and `noise`, which give the same numbers for the same round and client."
BOUND = (
    "Scale each row to a norm of at most 1, and replace a row whose norm is not finite by zeros: parts.clip does both."
)

SIZES = [10 ** (exponent / 4) for exponent in range(-24, 25)]  # of a random update: a clip may fail between two of them


@dataclass(frozen=True)
class Movement:
    """The most that one unit moved something, by the order of the norm.

    Attributes:
        released: The released sum.
        upload: Its own upload.
        unit: The released sum for an upload of norm 1, in L2.
        tried: Number of updates that were tried.
    """

    released: dict[int, float]
    upload: dict[int, float]
    unit: float
    tried: int


def update_cases(trial: TrialRound) -> dict[str, Tensor]:
    """Return flat updates to try, by what they are; for noise on examples, what one example may change."""
    size, like = trial.dimension, next(iter(trial.params.values()))
    random = torch.randn(size, generator=torch.Generator().manual_seed(0)).to(like)
    signs = 1 - 2 * (torch.arange(size, device=like.device) % 2).to(like)
    one_hot = torch.zeros_like(random)
    one_hot[size // 2] = 1
    directions = {"random": random, "one-hot": one_hot, "aligned": torch.ones_like(random), "alternating": signs}
    if trial.algorithm.mechanism.unit == "example":
        reach, order = trial.algorithm.sensitivity(trial.round) or 0.0, trial.algorithm.mechanism.norm_order
        return {f"a change by {name} values": row * (reach / row.norm(p=order)) for name, row in directions.items()}
    cases = {"a small random update": random * 1e-4, "a random update": random}
    cases |= {f"a huge {name} update": row * 1e6 for name, row in directions.items()}
    if not trial.algorithm.mechanism.is_private:
        return cases
    spoilt = random * 1e6
    spoilt[size // 2] = torch.nan
    largest = torch.finfo(like.dtype).max
    return cases | {
        "an update of the largest numbers": signs * largest,
        "an update with one NaN": spoilt,
        "an update of NaN": torch.full_like(random, torch.nan),
        "an update with one infinity": _infinite(random),
    }


def check_bounds(trial: TrialRound) -> None:
    """Refuse a mechanism whose bound lets an update through with a norm above 1."""
    mechanism = trial.algorithm.mechanism
    if not mechanism.is_private or mechanism.unit == "example":
        return
    cases = update_cases(trial) | {"a zero update": torch.zeros(trial.dimension)}
    rows = torch.stack([row.to(next(iter(trial.params.values()))) for row in cases.values()])
    with report_errors("`bound`"):
        bounded = norms(
            mechanism.bound(unflatten(rows, trial.params), trial.broadcast()), order=mechanism.norm_order
        ).tolist()
    names = list(cases)
    for size in SIZES:  # one by one: a large model would not fit so often
        with report_errors("`bound`"):
            row = mechanism.bound(unflatten(size * cases["a random update"][None], trial.params), trial.broadcast())
        names.append(f"a random update times {size:.3g}")
        bounded += norms(row, order=mechanism.norm_order).tolist()
    for name, norm in zip(names, bounded, strict=True):
        require(
            norm <= 1 + ROUNDING, f"`bound` left the norm of {name} at {norm:.4g}, and it must be at most 1.", BOUND
        )


def measure_movement(trial: TrialRound) -> Movement:
    """Play the same round with and without one client's update, and return the most that it moved.

    Raises:
        PartFailed: A result is not finite, depends on anything but the streams, or on another client.
    """
    mechanism = trial.algorithm.mechanism
    clients = min(CLIENTS, trial.algorithm.sampling.cohort_bounds(trial.population)[1])
    cases = update_cases(trial)
    others = next(iter(cases.values())).expand(clients - 1, -1)
    base = trial.play(torch.cat([torch.zeros_like(others[:1] if len(others) else _row(cases)), others]))
    _check_sizes(trial, base)
    _check_repeats(trial, base, others)
    released, upload = {1: 0.0, 2: 0.0}, {1: 0.0, 2: 0.0}
    for name, update in cases.items():
        result = trial.play(torch.cat([update[None], others]))
        require(
            torch.equal(result.uploads[1:], base.uploads[1:]),
            f"{name.capitalize()} of one client changed what another client uploads.",
            ROWS_ALONE,
        )
        if mechanism.is_private:
            check_finite(f"{name} of one client", result)
            _check_state(trial, name, base, result, others)
        for order in (1, 2):
            moved = (result.released - base.released).double().norm(p=order)
            sent = (result.uploads[0] - base.uploads[0]).double().norm(p=order)
            released[order], upload[order] = max(released[order], float(moved)), max(upload[order], float(sent))
    return Movement(released, upload, _unit_movement(trial, base, others), len(cases) + 1)


def _row(cases: dict[str, Tensor]) -> Tensor:
    return next(iter(cases.values()))[None]


def _infinite(random: Tensor) -> Tensor:
    changed = random.clone()
    changed[len(random) // 2] = torch.inf
    return changed


def _check_sizes(trial: TrialRound, base: RoundResult) -> None:
    size, extra = trial.dimension, trial.algorithm.mechanism.extra_values
    require(base.released.numel() == size, "`release_sum` must return the model's tensors and nothing else.")
    sent = base.uploads.shape[1] - size
    require(
        trial.algorithm.aggregation.is_secure or sent == extra,
        f"A client sends {sent} values beside its update, and `extra_values` says {extra}.",
    )


def _check_repeats(trial: TrialRound, base: RoundResult, others: Tensor) -> None:
    zero = torch.zeros(1, trial.dimension).to(others)
    again, alone = trial.play(torch.cat([zero, others]), ambient=1), trial.play(zero)
    same = torch.equal(base.uploads, again.uploads) and torch.equal(base.released, again.released)
    require(same, "The same round with the same random streams gave two results.", STREAMS)
    close = torch.allclose(base.uploads[:1].double(), alone.uploads.double(), rtol=1e-5, atol=1e-6)
    require(close, "A client's upload depends on which other clients join.", ROWS_ALONE)


def check_finite(name: str, result: RoundResult) -> None:
    """Refuse a round whose uploads, sum, model or state hold NaN or infinity."""
    state = [*result.state.params.values(), *result.state.mechanism.values()]
    finite = all(bool(torch.isfinite(each.double()).all()) for each in (result.uploads, result.released, *state))
    require(finite, f"With {name}, the result of the round is not finite.", BOUND)


def _check_state(trial: TrialRound, name: str, base: RoundResult, result: RoundResult, others: Tensor) -> None:
    """Refuse a state that depends on an update and on no noise: every later client receives what it announces."""
    for key, value in result.state.mechanism.items():
        if torch.equal(value, base.state.mechanism[key]):
            continue
        zero = torch.cat([torch.zeros(1, trial.dimension).to(others), others])
        runs = (trial.play(zero, seed=1 + run).state.mechanism[key] for run in range(RUNS))
        require(
            any(not torch.equal(run, base.state.mechanism[key]) for run in runs),
            f"The mechanism's state {key!r} depends on a client's update and carries no noise.",
            "Compute the next state from what was released, after the noise.",
        )


def _unit_movement(trial: TrialRound, base: RoundResult, others: Tensor) -> float:
    """Return how far an upload of norm 1 moves the released sum."""
    update = list(update_cases(trial).values())[1]
    moved = float((trial.play(torch.cat([update[None], others])).released - base.released).double().norm())
    broadcast = trial.broadcast()
    chosen = trial.algorithm.sparsifier.select(unflatten(update[None], trial.params), broadcast.announcement)
    bounded = trial.algorithm.mechanism.bound(chosen, broadcast)
    size = float(norms({name: bounded[name] for name in trial.params}))
    return moved / size if size > 0 else 0.0
