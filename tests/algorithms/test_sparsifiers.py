"""The contract of every sparsifier: exactly k coordinates, the same for a block as for each row, and the norm bound."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.mechanisms import Gaussian
from discreet.algorithms.sparsifiers import (
    AllCoordinates,
    AnySparsifier,
    PublicTopK,
    PublishedTopK,
    RandomK,
    ServerTopK,
    Sparsifier,
    TopK,
)
from discreet.algorithms.sparsifiers.top_coordinates import count_kept
from discreet.errors import InvalidInput
from discreet.params import Params, norms
from discreet.part import from_plain, to_plain
from discreet.testing import check_sparsifier

EVERY: list[Sparsifier] = [
    AllCoordinates(),
    RandomK(fraction=0.3),
    RandomK(fraction=0.3, scaled=True, seed=5),
    TopK(fraction=0.3),
    TopK(fraction=0.3, per_layer=False),
    PublicTopK(fraction=0.3),
    ServerTopK(fraction=0.3),
    PublishedTopK(fraction=0.3),
]
COMMON = [each for each in EVERY if isinstance(each, RandomK | PublicTopK)]
MODEL = {"weight": torch.zeros(3, 5), "bias": torch.zeros(4), "shift": torch.zeros(())}


def block(clients: int, seed: int = 0) -> Params:
    generator = torch.Generator().manual_seed(seed)
    return {name: torch.randn(clients, *value.shape, generator=generator) for name, value in MODEL.items()}


def row(client: int, rows: Params) -> Params:
    return {name: value[client] for name, value in rows.items()}


def announce(sparsifier: Sparsifier, round: int = 0) -> Params:
    return sparsifier.announce(MODEL, round, lambda params, round: row(0, block(1, seed=round + 9)))


def equal(left: Params, right: Params) -> bool:
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def nonzero(params: Params) -> int:
    return sum(int(value.count_nonzero()) for value in params.values())


@pytest.mark.parametrize("sparsifier", EVERY, ids=str)
def test_it_comes_back_from_plain_data(sparsifier: Sparsifier) -> None:
    assert from_plain(AnySparsifier, to_plain(sparsifier)) == sparsifier


@pytest.mark.parametrize("sparsifier", EVERY, ids=str)
def test_it_keeps_the_contract(sparsifier: Sparsifier) -> None:
    assert check_sparsifier(sparsifier)
    assert check_sparsifier(sparsifier, MODEL)


@pytest.mark.parametrize("sparsifier", EVERY, ids=str)
def test_a_block_is_treated_as_each_client_alone(sparsifier: Sparsifier) -> None:
    rows, known = block(4), announce(sparsifier)
    for step in (sparsifier.select, sparsifier.finish):
        together = step(rows, known)
        for client in range(4):
            alone = step({name: value[client : client + 1] for name, value in rows.items()}, known)
            assert equal(row(client, together), row(0, alone))


@pytest.mark.parametrize("sparsifier", EVERY, ids=str)
def test_only_the_published_order_is_unsound_and_says_why(sparsifier: Sparsifier) -> None:
    if isinstance(sparsifier, PublishedTopK):
        assert "share of noise" in str(sparsifier.unsound_reason)
    else:
        assert sparsifier.unsound_reason is None


@pytest.mark.parametrize("sparsifier", EVERY, ids=str)
def test_what_it_announces_meets_no_name_of_a_mechanism_and_lies_with_the_model(sparsifier: Sparsifier) -> None:
    for name, mask in announce(sparsifier).items():
        assert name.startswith("mask ")
        assert mask.device == MODEL[name.removeprefix("mask ")].device
        assert mask.shape == MODEL[name.removeprefix("mask ")].shape


@pytest.mark.parametrize("sparsifier", COMMON, ids=str)
def test_a_common_mask_keeps_six_of_twenty_coordinates_of_everybody(sparsifier: Sparsifier) -> None:
    known = announce(sparsifier)
    chosen = sparsifier.select(block(4), known)
    kept_by = [{name: value != 0 for name, value in row(client, chosen).items()} for client in range(4)]
    assert nonzero(kept_by[0]) == 6
    assert all(equal(kept_by[0], other) for other in kept_by[1:])
    assert equal(kept_by[0], {name: known[f"mask {name}"] for name in MODEL})
    assert equal({name: value != 0 for name, value in sparsifier.expand(row(0, block(1)), known).items()}, kept_by[0])


def test_a_random_mask_hangs_on_seed_and_round_and_on_nothing_else() -> None:
    sparsifier = RandomK(fraction=0.3)
    other_model = {name: MODEL[name] + 1 for name in reversed(MODEL)}
    assert equal(sparsifier.announce(MODEL, 3), sparsifier.announce(other_model, 3))
    masks = [sparsifier.announce(MODEL, round) for round in range(5)]
    masks.append(RandomK(fraction=0.3, seed=1).announce(MODEL, 0))
    assert len({str(sorted(mask.items())) for mask in masks}) == 6


def test_every_coordinate_is_drawn_alike() -> None:
    """2,000 draws of 6 of 20: |z| < 5.5 for each has a false-alarm rate of 8e-7; one drawn a quarter more has z = 7."""
    drawn = torch.zeros(20)
    for round in range(2000):
        masks = RandomK(fraction=0.3).announce(MODEL, round)
        drawn += torch.cat([masks[f"mask {name}"].flatten() for name in sorted(MODEL)])
    assert float(drawn.sum()) == 2000 * 6
    assert float((drawn - 600).abs().max()) / math.sqrt(2000 * 0.3 * 0.7) < 5.5


def test_scaling_makes_a_random_mask_unbiased_and_comes_before_the_clip() -> None:
    sparsifier = RandomK(fraction=0.25, scaled=True)
    ones = {name: torch.ones(1, *value.shape) for name, value in MODEL.items()}
    chosen = sparsifier.select(ones, sparsifier.announce(MODEL, 0))
    assert sum(float(value.sum()) for value in chosen.values()) == 20.0  # five coordinates of 20/5
    bounded = Gaussian(clip_norm=1.0).bound(chosen, Broadcast(0, MODEL, {}))
    assert float(norms(bounded)) <= 1


def test_the_largest_of_each_tensor_or_of_all_together() -> None:
    delta = {"a": torch.tensor([[1.0, -9.0, 2.0, 3.0]]), "b": torch.tensor([[10.0, -20.0]])}
    each = TopK(fraction=0.5).select(delta, {})
    assert {name: value.tolist() for name, value in each.items()} == {"a": [[0, -9, 0, 3]], "b": [[0, -20]]}
    together = TopK(fraction=0.5, per_layer=False).select(delta, {})
    assert {name: value.tolist() for name, value in together.items()} == {"a": [[0, -9, 0, 0]], "b": [[10, -20]]}


def test_clients_keep_their_own_largest() -> None:
    delta = {"w": torch.tensor([[1.0, 5.0, 2.0], [-7.0, 0.0, 3.0]])}
    assert TopK(fraction=0.3).select(delta, {})["w"].tolist() == [[0, 5, 0], [-7, 0, 0]]


def test_ties_go_to_the_first_so_that_exactly_k_are_kept() -> None:
    delta = {"w": torch.tensor([[1.0, -1.0, 1.0, 1.0, 2.0]])}
    assert TopK(fraction=0.6).select(delta, {})["w"].tolist() == [[1, -1, 0, 0, 2]]


@pytest.mark.parametrize(
    ("fraction", "coordinates", "k"), [(0.1, 30, 3), (0.1, 31, 4), (1.0, 7, 7), (1e-9, 5, 1), (0.07, 100, 7)]
)
def test_k_is_the_fraction_rounded_up_as_it_is_written(fraction: float, coordinates: int, k: int) -> None:
    assert count_kept(fraction, coordinates) == k


@given(
    rows=st.lists(st.lists(st.floats(width=32), min_size=6, max_size=6), min_size=1, max_size=4),
    fraction=st.floats(0.01, 1),
    per_layer=st.booleans(),
)
def test_before_the_clip_the_norm_bound_holds_for_any_update(
    rows: list[list[float]], fraction: float, per_layer: bool
) -> None:
    values = torch.tensor(rows)
    delta = {"w": values[:, :4], "b": values[:, 4:]}
    chosen = TopK(fraction=fraction, per_layer=per_layer).select(delta, {})
    k = count_kept(fraction, 4) + count_kept(fraction, 2) if per_layer else count_kept(fraction, 6)
    assert all(nonzero(row(client, chosen)) <= k for client in range(len(rows)))
    bounded = Gaussian(clip_norm=0.5).bound(chosen, Broadcast(0, MODEL, {}))
    assert bool((norms(bounded) <= 1).all())


def test_what_is_not_a_number_is_kept_for_the_clip_to_see() -> None:
    delta = {"w": torch.tensor([[1.0, math.nan, 2.0], [1.0, 3.0, 2.0]])}
    chosen = TopK(fraction=0.3).select(delta, {})
    bounded = Gaussian(clip_norm=1.0).bound(chosen, Broadcast(0, MODEL, {}))["w"]
    assert bounded.tolist() == [[0, 0, 0], [0, pytest.approx(1, abs=2e-5), 0]]


def test_a_mask_hides_infinity_where_it_is_zero() -> None:
    sparsifier = RandomK(fraction=0.3)
    known = sparsifier.announce(MODEL, 0)
    endless = {name: torch.where(known[f"mask {name}"], 1.0, math.inf)[None] for name in MODEL}
    assert float(norms(sparsifier.select(endless, known))) == pytest.approx(math.sqrt(6))


def test_the_server_keeps_the_largest_of_the_noisy_sum() -> None:
    total = {"a": torch.tensor([0.1, -4.0]), "b": torch.tensor([[3.0, 0.2]])}
    expanded = ServerTopK(fraction=0.5).expand(total, {})
    assert {name: value.tolist() for name, value in expanded.items()} == {"a": [0, -4], "b": [[3, 0]]}


def test_the_published_order_drops_coordinates_of_what_a_client_sends_of_each_tensor() -> None:
    sparsifier, rows = PublishedTopK(fraction=0.5), {"a": torch.tensor([[1.0, -9.0]]), "b": torch.tensor([[5.0, 6.0]])}
    assert sparsifier.select(rows, {}) is rows
    finished = sparsifier.finish(rows, {})
    assert {name: value.tolist() for name, value in finished.items()} == {"a": [[0, -9]], "b": [[0, 6]]}


def test_what_a_mechanism_adds_to_the_vector_is_sent_too() -> None:
    """One number for each client in addition to the update, such as whether it was below an adaptive clip."""
    rows = block(4) | {"flag": torch.tensor([0.1, -0.1, 0.1, 0.1])}
    for sparsifier in EVERY:
        assert torch.equal(sparsifier.finish(rows, announce(sparsifier))["flag"], rows["flag"])


def test_a_public_mask_is_that_of_the_largest_coordinates_of_the_public_update() -> None:
    model = {"a": torch.zeros(2), "b": torch.ones(1, 2)}

    def update(params: Params, round: int) -> Params:
        assert (params, round) == (model, 3)
        return {"a": torch.tensor([0.1, -4.0]), "b": torch.tensor([[3.0, 0.2]])}

    masks = PublicTopK(fraction=0.5).announce(model, 3, update)
    assert {name: mask.tolist() for name, mask in masks.items()} == {"mask a": [False, True], "mask b": [[True, False]]}


def test_a_public_mask_without_public_data_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"public data, and there is none\. Name some in the task .*random_k"):
        PublicTopK(fraction=0.5).announce(MODEL, 0)
