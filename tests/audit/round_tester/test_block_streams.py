"""Streams of many repetitions at once. Each comparison is six standard errors wide: a false alarm in 1e-8 at most."""

import pytest
import torch

from discreet.audit.round_tester.block_streams import BlockRows, VectorisedRows
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import RunKey

ROWS = 40_000
LIKE = {"a": torch.zeros(2, dtype=torch.float64), "b": torch.zeros((), dtype=torch.float64)}


def block_rows(number: int = 0) -> BlockRows:
    return BlockRows(RunKey.from_seed(3).rows(0, b"", [number], torch.device("cpu")), (0, 1) * (ROWS // 2))


DRAWS = {
    "normal": (lambda streams: streams.normal(LIKE), 1.0, 3),
    "laplace": (lambda streams: streams.laplace(LIKE), 2.0, 6),
    "skellam": (lambda streams: streams.skellam(LIKE, 9.0), 9.0, 3.2),
    "discrete_gaussian": (lambda streams: streams.discrete_gaussian(LIKE, 9.0), 9.0, 3),
}


@pytest.mark.parametrize("kind", DRAWS)
def test_rows_are_independent_and_have_the_variance_that_was_asked_for(kind: str) -> None:
    draw, variance, kurtosis = DRAWS[kind]
    drawn = draw(block_rows().open())
    flat = torch.cat([drawn["a"], drawn["b"][:, None]], dim=1).double()
    assert flat.shape == (ROWS, 3)
    error = 6 * (kurtosis / ROWS) ** 0.5
    assert (flat.var(dim=0) / variance).tolist() == pytest.approx([1, 1, 1], abs=error)
    assert flat.mean(dim=0).tolist() == pytest.approx([0, 0, 0], abs=error * variance**0.5)
    neighbours = torch.corrcoef(torch.cat([flat[:-1], flat[1:]], dim=1).T)
    assert (neighbours - torch.eye(6)).abs().max() < 6 / ROWS**0.5


def test_a_stream_that_is_opened_again_starts_again_and_other_purposes_differ() -> None:
    rows = block_rows().for_purpose(Purpose.NOISE)
    streams = rows.open()
    first, second = streams.normal(LIKE)["a"], streams.normal(LIKE)["a"]
    assert torch.equal(first, rows.open().normal(LIKE)["a"])
    assert not torch.equal(first, second)
    assert not torch.equal(first, block_rows().for_purpose(Purpose.SHARE).open().normal(LIKE)["a"])
    assert not torch.equal(first, block_rows(1).for_purpose(Purpose.NOISE).open().normal(LIKE)["a"])


def test_uniform_numbers_end_at_a_clients_own_size() -> None:
    drawn = block_rows().open().uniform([3, 1] * (ROWS // 2))
    assert (drawn[1::2, 1:] == 2).all()
    inside = torch.cat([drawn[::2].flatten(), drawn[1::2, 0]])
    assert inside.min() >= 0
    assert inside.max() < 1
    assert inside.mean() == pytest.approx(0.5, abs=6 * (1 / 12 / len(inside)) ** 0.5)


@pytest.mark.parametrize("kind", ["normal", "laplace"])
def test_the_server_draws_for_every_repetition_of_a_vectorised_step(kind: str) -> None:
    _, variance, kurtosis = DRAWS[kind]

    def step(total: torch.Tensor) -> torch.Tensor:
        return getattr(VectorisedRows().for_purpose(Purpose.SERVER).open(), kind)({"w": total})["w"][0]

    with torch.random.fork_rng():
        torch.manual_seed(5)
        drawn = torch.func.vmap(step, randomness="different")(torch.zeros(ROWS, 2, dtype=torch.float64))
    assert (drawn.var(dim=0) / variance).tolist() == pytest.approx([1, 1], abs=6 * (kurtosis / ROWS) ** 0.5)
    assert abs(torch.corrcoef(torch.stack([drawn[:-1, 0], drawn[1:, 0]]))[0, 1]) < 6 / ROWS**0.5


def test_integers_on_the_server_are_refused_in_a_vectorised_step() -> None:
    with pytest.raises(NotImplementedError):
        VectorisedRows().skellam(LIKE, 1.0)
    with pytest.raises(NotImplementedError):
        VectorisedRows().discrete_gaussian(LIKE, 1.0)
    assert VectorisedRows().uniform([2, 1])[1, 1] == 2
