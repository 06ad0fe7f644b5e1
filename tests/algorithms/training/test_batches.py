"""Batches: every example is in its client's batch, and none is dropped."""

import math

import pytest
import torch

from discreet.algorithms.training.batches import Batch
from discreet.randomness.streams import RunKey, Streams
from tests.federations import CPU, federation

KEY = RunKey.from_seed(7)


def streams(clients: list[int], round: int = 0) -> Streams:
    return KEY.rows(round, b"", clients, CPU).open()


def batch_values(batches: list[Batch], client: int) -> list[list[float]]:
    return [b.inputs[client][b.mask[client]].flatten().tolist() for b in batches]


def test_a_pass_holds_every_example_of_every_client_once() -> None:
    data = federation(5, 3, 8, features=1)
    batches = list(data.block([0, 1, 2]).draw_shuffled(2, [3, 2, 4], streams([0, 1, 2])))
    assert len(batches) == 4
    for client, (start, size) in enumerate(zip(data.starts, data.sizes, strict=True)):
        seen = sorted(value for batch in batch_values(batches, client) for value in batch)
        assert seen == sorted(data.inputs[start : start + size].flatten().tolist())


def test_clients_that_are_done_are_not_active() -> None:
    batches = list(federation(5, 3).block([0, 1]).draw_shuffled(2, [3, 2], streams([0, 1])))
    assert [batch.active is None or batch.active.tolist() for batch in batches] == [True, True, [True, False]]
    assert not batches[2].mask[1].any()


def test_each_pass_has_its_own_order() -> None:
    batches = list(federation(40, features=1).block([0]).draw_shuffled(40, [2], streams([0])))
    first, second = batch_values(batches, 0)
    assert first != second
    assert sorted(first) == sorted(second)


def test_a_client_draws_the_same_whoever_shares_its_block() -> None:
    data = federation(6, 9, 4)
    alone = list(data.block([1]).draw_shuffled(4, [5], streams([1])))
    together = list(data.block([2, 1, 0]).draw_shuffled(4, [5, 5, 5], streams([2, 1, 0])))
    assert batch_values(alone, 0) == batch_values(together, 1)
    alone = list(data.block([1]).draw_poisson(0.5, streams([1]), 3))
    together = list(data.block([2, 1, 0]).draw_poisson(0.5, streams([2, 1, 0]), 3))
    assert [x for b in batch_values(alone, 0) for x in b] == [x for b in batch_values(together, 1) for x in b]


@pytest.mark.parametrize("width", [1, 3, 1000])
def test_the_width_of_a_piece_changes_nothing(width: int) -> None:
    data = federation(50, 20, features=1)
    whole = list(data.block([0, 1]).draw_poisson(0.4, streams([0, 1]), 10**6))
    pieces = list(data.block([0, 1]).draw_poisson(0.4, streams([0, 1]), width))
    for client in (0, 1):
        assert [x for b in batch_values(whole, client) for x in b] == [
            x for b in batch_values(pieces, client) for x in b
        ]
        assert all(len(piece) <= width for piece in batch_values(pieces, client))


def test_nobody_drawn_is_no_batch() -> None:
    assert list(federation(3, 2).block([0, 1]).draw_poisson(1e-9, streams([0, 1]), 10)) == []


def test_each_example_is_drawn_at_its_rate_and_alone() -> None:
    """Two z-tests at |z| < 5.3: a false-alarm rate of 2.3e-7. A rate off by 2 % has z = 8."""
    data, rate, trials = federation(100, features=1), 0.3, 4000
    counts = torch.zeros(100)
    sizes = []
    values = {value: i for i, value in enumerate(data.inputs.flatten().tolist())}
    for trial in range(trials):
        chosen = [
            values[x]
            for batch in batch_values(list(data.block([0]).draw_poisson(rate, streams([0], trial), 1000)), 0)
            for x in batch
        ]
        counts[chosen] += 1
        sizes.append(len(chosen))
    total = float(counts.sum())
    assert abs(total - 100 * trials * rate) / math.sqrt(100 * trials * rate * (1 - rate)) < 5.3
    variance = torch.tensor(sizes, dtype=torch.float64).var()
    spread = 100 * rate * (1 - rate)
    assert abs(float(variance) - spread) / (spread * math.sqrt(2 / trials)) < 5.3  # alone: sizes are binomial


def test_a_whole_batch_holds_every_example_of_every_client_in_order() -> None:
    data = federation(5, 3, 8, features=1)
    batch = data.block([2, 0]).full_batch()
    assert batch.mask.sum(dim=1).tolist() == [8, 5]
    assert batch.active is None
    assert batch_values([batch], 0) == [data.inputs[8:].flatten().tolist()]
    assert batch_values([batch], 1) == [data.inputs[:5].flatten().tolist()]
