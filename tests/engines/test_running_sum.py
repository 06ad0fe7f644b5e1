"""The sum over a cohort moves by no more than one client, in exact arithmetic."""

from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.mechanisms import Gaussian
from discreet.algorithms.uploads import Uploads
from discreet.engines.engine import CohortSum
from discreet.engines.running_sum import RunningSum

UNIT = Fraction(1, 2**53)
MODEL = {"w": torch.zeros(1)}


def staircase(power: int, more: int) -> Tensor:
    """Return 2^power rows of 1, then `more` small negative ones: a sum in single precision that has reached 2^power
    rounds each of the small ones to 0, and one that has not rounds each to almost twice its size."""
    small = -0.6 * 2.0 ** (power - 24)
    return torch.cat([torch.ones(2**power), torch.full((more,), small)])[:, None]


def add_up(rows: Tensor, block: int = 1) -> Fraction:
    running = RunningSum()
    for some in rows.split(block):
        running.add({"w": some})
    total = running.total()
    assert total is not None
    assert total["w"].dtype == torch.float64
    return Fraction(float(total["w"]))


def exact(rows: Tensor) -> Fraction:
    return sum((Fraction(each) for each in rows.flatten().tolist()), Fraction(0))


def test_in_single_precision_one_client_could_move_the_sum_by_more_than_the_clip() -> None:
    """Why sums are in double precision: one client of norm 1 in 2,048 moves this sum by 1.03."""
    rows = staircase(10, 1024)
    moved = _add_one_by_one(torch.cat([torch.ones(1, 1), rows])) - _add_one_by_one(rows)
    assert moved > 1.03


def _add_one_by_one(rows: Tensor) -> float:
    total = torch.zeros(1)
    for row in rows:
        total = total + row
    return float(total)


@pytest.mark.parametrize("block", [1, 7, 4096])
def test_one_client_moves_the_sum_by_no_more_than_its_norm(block: int) -> None:
    rows = staircase(10, 1024)
    moved = add_up(torch.cat([torch.ones(1, 1), rows]), block) - add_up(rows, block)
    assert abs(moved - 1) <= 2 * (block + 2) * UNIT * len(rows)


@given(
    rows=st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=60),
    scales=st.lists(st.integers(-100, 100), min_size=60, max_size=60),
    block=st.sampled_from([1, 2, 5, 64]),
)
def test_the_sum_is_within_its_bound_of_the_exact_sum(rows: list[float], scales: list[int], block: int) -> None:
    values = torch.tensor([[row * 2.0**scale] for row, scale in zip(rows, scales, strict=False)])
    most = sum(abs(Fraction(each)) for each in values.flatten().tolist())
    allowed = (min(block, len(rows)) + 2) * UNIT * most * (1 + UNIT * 10_000)
    assert abs(add_up(values, block) - exact(values)) <= allowed


def test_sums_that_cancel_keep_what_is_small() -> None:
    assert add_up(torch.tensor([[1e30], [1.0], [-1e30]])) == 1


def test_integers_are_summed_as_they_are() -> None:
    running = RunningSum()
    for value in (2**62, 1, 2**62, 3):  # modulo 2^64
        running.add({"w": torch.tensor([[value]])})
    total = running.total()
    assert total is not None
    assert total["w"].tolist() == [4 - 2**63]


def test_a_sum_that_is_not_finite_stays_so() -> None:
    running = RunningSum()
    for value in (1.0, float("inf"), 2.0):
        running.add({"w": torch.tensor([[value]])})
    total = running.total()
    assert total is not None
    assert total["w"].tolist() == [float("inf")]


def test_the_noise_is_added_before_the_sum_is_rounded() -> None:
    """2²⁴ + 1 is between two numbers of single precision. Rounded to 2²⁴ first, it would lose a whole client."""

    class NoiseOfOnes:
        def open(self) -> "NoiseOfOnes":
            return self

        def normal(self, like: dict[str, Tensor]) -> dict[str, Tensor]:
            return {name: torch.ones(1, *value.shape, dtype=value.dtype) for name, value in like.items()}

    blocks = [([0], Uploads({"w": torch.tensor([[2.0**24]])}, torch.ones(1)))]
    blocks.append(([1], Uploads({"w": torch.tensor([[1.0]])}, torch.ones(1))))
    mechanism, told = Gaussian(clip_norm=1.0, noise_multiplier=1.0), Broadcast(0, MODEL, {})
    total = CohortSum.from_blocks(blocks, told, mechanism).total
    released, _ = mechanism.release_sum(total, {}, told, 2, 2, NoiseOfOnes())  # type: ignore[arg-type]
    assert released["w"].dtype == torch.float32
    assert float(released["w"]) == 2**24 + 2
