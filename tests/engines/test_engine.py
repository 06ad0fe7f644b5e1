"""What an engine reports beside the sum: whom it came from, and how much of each update the clip left."""

import torch

from discreet.algorithms.algorithm import Sent
from discreet.broadcast import Broadcast
from discreet.engines.engine import CohortSum
from discreet.mechanisms import Gaussian, NoPrivacy

MODEL = {"w": torch.zeros(1)}


def test_blocks_are_summed_and_their_clients_listed() -> None:
    blocks = [([2, 0], Sent({"w": torch.tensor([[1.0], [2.0]])}, torch.tensor([1.0, 2.0])))]
    blocks.append(([1], Sent({"w": torch.tensor([[4.0]])}, torch.tensor([4.0]))))
    found = CohortSum.of(blocks, Broadcast(0, MODEL, {}), Gaussian(clip_norm=2.0))
    assert float(found.total["w"]) == 7
    assert found.contributors == (2, 0, 1)
    assert found.kept.tolist() == [1, 1, 0.5]  # paper 004's alpha: min(1, C/‖Δ‖)
    assert found.clipped == 1 / 3


def test_without_a_clip_all_is_kept_and_nobody_is_nothing() -> None:
    sent = Sent({"w": torch.ones(1, 1)}, torch.tensor([9.0]))
    assert CohortSum.of([([0], sent)], Broadcast(0, MODEL, {}), NoPrivacy()).kept.tolist() == [1]
    nobody = CohortSum.of([], Broadcast(0, MODEL, {}), Gaussian(clip_norm=2.0))
    assert (nobody.contributors, float(nobody.total["w"]), nobody.clipped) == ((), 0, 0)
