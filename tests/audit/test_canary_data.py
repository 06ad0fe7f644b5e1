"""Canaries: their directions and gradients, blank rows, and where they are planted."""

import pytest
import torch

from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.training.convex_local import ConvexLocal
from discreet.audit.canary_data import (
    Amplitudes,
    CanaryLoss,
    Directions,
    build_data,
    client_slots,
    spread_slots,
)
from discreet.audit.feature_canaries import count_features, plant_features
from discreet.errors import Unsupported
from discreet.params import flatten, norms
from discreet.randomness.streams import RunKey

PARAMS = {"weight": torch.zeros(3, 4), "bias": torch.zeros(3)}
LIKE = PARAMS["bias"]


def draw_directions(canaries, narrow=False):
    return Directions.draw(canaries, 15, torch.Generator().manual_seed(1), LIKE, narrow=narrow)


def test_directions_have_norm_one_and_share_no_coordinate():
    for canaries in (1, 4, 15):
        rows = draw_directions(canaries).project(torch.eye(15))
        assert torch.allclose(rows.T @ rows, torch.eye(canaries), atol=1e-6)


def test_a_narrow_direction_is_one_coordinate():
    rows = draw_directions(4, narrow=True).project(torch.eye(15))
    assert (rows != 0).sum(dim=0).tolist() == [1, 1, 1, 1]


def test_within_a_mask_directions_have_norm_one_again():
    mask = torch.arange(15) % 2 == 0
    rows = draw_directions(3).project(torch.eye(15), mask)
    assert torch.allclose((rows**2).sum(dim=0), torch.ones(3))
    assert not rows[~mask].any()


def test_the_gradient_of_a_canary_is_its_direction_whatever_the_model():
    directions = draw_directions(4)
    loss = CanaryLoss(directions)
    for value in (0.0, 3.0):
        model = {name: torch.full_like(each, value) for name, each in PARAMS.items()}
        gradient = torch.func.grad(lambda p: loss(p, torch.tensor([[2.0, 5.0]]), torch.zeros(1)).sum())(model)
        flat = torch.cat([gradient["bias"], gradient["weight"].flatten()])
        assert torch.allclose(directions.project(flat), torch.tensor([0.0, 0, -5, 0]), atol=1e-6)
        assert torch.allclose(flat.norm(), torch.tensor(5.0))


def test_absent_canaries_and_all_other_rows_are_blank():
    slots = spread_slots((4, 4), (0, 1), rows=2, canaries=3, most=4)
    data = build_data(slots, (4, 4), torch.tensor([True, False, True]), Amplitudes(7.0), LIKE)
    assert slots.clients == (0, 1, 0)
    assert data.counted is not None
    assert data.counted.tolist() == [True, True, True, True, False, False, False, False]
    assert data.inputs[:, 1].tolist() == [7, 7, 7, 7, 0, 0, 0, 0]


def test_the_rows_beside_a_canary_pull_the_other_way():
    slots = spread_slots((3, 3), (0, 1), rows=1, canaries=9, most=1)
    data = build_data(slots, (3, 3), torch.tensor([True, False]), Amplitudes(7.0, 0.0, -1.0), LIKE)
    assert data.inputs[:, 1].tolist() == [7, -1, -1, 0, -1, -1]


def test_a_canary_client_has_all_rows_of_its_client():
    slots = client_slots((2, 3, 1), (0, 2), 5)
    assert slots.clients == (0, 2)
    assert slots.rows == (range(2), range(5, 6))


def test_batches_leave_blank_rows_out_and_count_what_they_draw():
    slots = spread_slots((2, 2), (0, 1), rows=1, canaries=4, most=2)
    data = build_data(slots, (2, 2), torch.tensor([True, True, False, False]), Amplitudes(1.0), LIKE)
    batch = data.block([0, 1]).full_batch()
    assert data.draws is not None
    assert batch.mask.tolist() == [[True, False], [True, False]]
    assert data.draws.tolist() == [1, 0, 1, 0]


def test_a_canary_feature_moves_the_weights_of_two_classes_by_the_whole_clip():
    """One step of rate 2 on features of norm 3 in batches of 4 moves them by 2·0.5/(3·4), along (e₀ − e₁)/√2."""
    slots = spread_slots((4,), (0,), rows=1, canaries=2, most=4)
    planted = plant_features(slots, (4,), torch.tensor([True, False]), Amplitudes(1.0), PARAMS, 3.0)
    trainer = ConvexLocal(learning_rate=2.0, clip_norm=0.5, feature_bound=3.0, batch_size=4)
    rows = RunKey.from_seed(1).rows(0, b"", [0], torch.device("cpu"))
    moved = trainer.train(planted.loss, Broadcast(0, planted.params, {}), planted.data.block([0]), rows)
    seen = planted.directions.project(flatten({name: value[0].float() for name, value in moved.items()}))
    assert torch.allclose(seen, torch.tensor([2 * 0.5 / 12, 0.0]), rtol=1e-3)
    assert torch.allclose(norms(moved), torch.tensor([2 * 0.5 / 12], dtype=torch.float64), rtol=1e-3)


def test_only_one_linear_layer_has_canary_features():
    with pytest.raises(Unsupported, match="one linear layer"):
        count_features({"a": torch.zeros(2, 3), "b": torch.zeros(3, 3)})
    assert count_features(PARAMS) == 4
