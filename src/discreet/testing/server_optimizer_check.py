"""The contracts of a server optimiser and of a schedule as checks. Neither sees more than what is released."""

import math

import torch

from discreet.algorithms.server_optimizers import ServerOptimizer, State
from discreet.algorithms.training.schedules import Schedule
from discreet.params import Params, zeros_like
from discreet.testing.part_failure import report_errors, require
from discreet.testing.wrapped_part import wrap_part
from discreet.words import fill

KEEP_STATE = "Keep all that a step depends on in the state that it returns: a checkpoint stores nothing else."
STEPS = 20


def check_server_optimizer(optimizer: ServerOptimizer, params: Params | None = None) -> list[str]:
    """Check that a server optimiser keeps its contract: a step is a function of its arguments.

    Args:
        optimizer: The server optimiser, ours or a user's own.
        params: A model to try it on; by default a small one.

    Returns:
        What was tried, in sentences.

    Raises:
        PartFailed: The optimiser doesn't keep its contract. The message says what was seen.

    Example:
        >>> from discreet.algorithms.server_optimizers import ServerSgd
        >>> check_server_optimizer(ServerSgd(momentum=0.9))
        ['Took 20 steps of the server twice: the results were equal and finite, and no argument was changed.']
    """
    optimizer = wrap_part(ServerOptimizer, optimizer)
    params = params or {"weight": torch.linspace(-1, 1, 12).reshape(3, 4), "bias": torch.zeros(3)}
    with report_errors("The server optimiser"):
        first, second = (_take_steps(optimizer, params) for _ in range(2))
    for step, (one, other) in enumerate(zip(first, second, strict=True)):
        require(
            _is_equal(one[0], other[0]) and _is_equal(one[1], other[1]),
            f"The same {step + 1} steps from the same model gave two results.",
            KEEP_STATE,
        )
    return [fill("trial.server_steps", steps=STEPS)]


def check_schedule(schedule: Schedule, rounds: int = 1000) -> list[str]:
    """Check that a schedule keeps its contract: a factor depends on k alone, is finite and not negative.

    Args:
        schedule: The schedule, ours or a user's own.
        rounds: Number of factors to look at.

    Returns:
        What was tried, in sentences.

    Raises:
        PartFailed: A factor is not finite, is negative, or changes from call to call.

    Example:
        >>> from discreet.algorithms.training.schedules import Inverse
        >>> check_schedule(Inverse(decay=0.1))
        ['Read 1,000 factors of the schedule twice: finite, not negative, and the same.']
    """
    schedule = wrap_part(Schedule, schedule)
    with report_errors("The schedule"):
        factors, again = ([float(schedule.factor(k)) for k in range(rounds)] for _ in range(2))
    for k, factor in enumerate(factors):
        require(
            math.isfinite(factor) and factor >= 0,
            f"A factor must be finite and not negative, and factor {k} is {factor}.",
        )
        require(
            factor == again[k], f"Factor {k} was {factor} at first and then {again[k]}.", "Compute it from k alone."
        )
    return [fill("trial.schedule", factors=f"{rounds:,}")]


def _take_steps(optimizer: ServerOptimizer, start: Params) -> list[tuple[Params, State]]:
    """Take steps by a random, a zero and a large mean update."""
    generator = torch.Generator().manual_seed(0)
    random = {name: torch.randn(value.shape, generator=generator).to(value) for name, value in sorted(start.items())}
    large = {name: 1e3 * value for name, value in random.items()}
    params, state, results = start, optimizer.init(start), []
    for mean in (random, zeros_like(start), large):
        _check_state(state)
        before = [_copy(each) for each in (params, mean, state)]
        moved = optimizer.step(params, mean, state)
        kept = all(_is_equal(*pair) for pair in zip(before, (params, mean, state), strict=True))
        require(kept, "A step changed one of its arguments in place.", "Return new tensors.")
        params, state = moved
        _check_model(params, start)
        results.append((_copy(params), _copy(state)))
    _check_state(state)
    return results


def _check_model(params: Params, start: Params) -> None:
    same = params.keys() == start.keys() and all(
        params[name].shape == value.shape and params[name].dtype == value.dtype for name, value in start.items()
    )
    require(same, "A step must return the model's tensors with their names, shapes and types.")
    finite = all(bool(torch.isfinite(value).all()) for value in params.values())
    require(finite, "A step by a finite update gave a model that is not finite.")


def _check_state(state: State) -> None:
    """Refuse a state that a checkpoint can't store."""
    require(
        isinstance(state, dict), f"The state must be a dict of tensors, and got a {type(state).__name__}.", KEEP_STATE
    )
    for name, value in state.items():
        stored = isinstance(name, str) and isinstance(value, torch.Tensor)
        require(stored, f"The state must hold tensors, and {name!r} is a {type(value).__name__}.", KEEP_STATE)


def _copy(params: Params) -> Params:
    return {name: value.clone() for name, value in params.items()}


def _is_equal(left: Params, right: Params) -> bool:
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)
