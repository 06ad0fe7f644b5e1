"""The lattice: strict bounds, unbiased rounding, and a ring with a stated wrap-around probability."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from discreet.errors import InvalidInput
from discreet.params import unflatten
from discreet.privacy.skellam import l2_after_rounding, scale_for_bits
from discreet.randomness.secret_streams import secret_generator
from discreet.randomness.streams import RunKey, Streams
from discreet.secure_sums.discrete_noise.gaussian_sampler import draw_discrete_gaussian
from discreet.secure_sums.discrete_noise.skellam_sampler import LARGEST_RATE, draw_skellam
from discreet.secure_sums.lattice.lattice_encoding import flatten_block
from discreet.secure_sums.lattice.ring import decode_sum, to_signed, wrap_into_ring
from discreet.secure_sums.lattice.rotation import Rotation, hadamard, padded_dimension
from discreet.secure_sums.lattice.rounding import l2_of_rounded_sum, round_conditionally, round_stochastically
from discreet.secure_sums.lattice.scale import SumPlan, fit_scale, wraparound_probability
from tests.federations import CPU

SEEDS = st.integers(min_value=0, max_value=2**32)
KEY = RunKey.from_seed(5)


def streams(*clients: int, seed: int = 0) -> Streams:
    return RunKey.from_seed(seed).rows(0, bytes(32), clients, CPU).open()


def vectors(seed: int, count: int, dimension: int, norm: float) -> Tensor:
    """Return random vectors of this norm; some are along one axis, where rounding has most room."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randn(count, dimension, dtype=torch.float64, generator=generator)
    drawn[0] = torch.nn.functional.one_hot(torch.tensor(0), dimension)
    return norm * (1 - 1e-9) * drawn / drawn.norm(dim=1, keepdim=True)


class TestRotation:
    def test_four_coordinates_by_hand(self) -> None:
        assert hadamard(torch.tensor([1.0, 2.0, 3.0, 4.0])).tolist() == [5.0, -1.0, -2.0, 0.0]

    @given(st.integers(min_value=1, max_value=300), SEEDS)
    def test_the_inverse_gives_back_what_was_rotated_and_norms_stay(self, dimension: int, seed: int) -> None:
        rotation = Rotation.draw(dimension, torch.Generator().manual_seed(seed))
        before = vectors(seed, 3, dimension, 7.0)
        after = rotation.forward(before)
        assert after.shape == (3, padded_dimension(dimension))
        assert torch.allclose(rotation.inverse(after), before, rtol=0, atol=1e-12)
        assert torch.allclose(after.norm(dim=1), before.norm(dim=1), rtol=1e-12)

    def test_it_is_the_matrix_of_sylvester(self) -> None:
        matrix = torch.ones(1, 1, dtype=torch.float64)
        for _ in range(3):
            matrix = torch.kron(torch.tensor([[1.0, 1.0], [1.0, -1.0]], dtype=torch.float64), matrix)
        assert torch.allclose(hadamard(torch.eye(8, dtype=torch.float64)), matrix / math.sqrt(8))

    def test_a_single_large_coordinate_is_spread_evenly(self) -> None:
        rotation = Rotation.draw(1000, torch.Generator().manual_seed(1))
        spike = torch.zeros(1000, dtype=torch.float64)
        spike[17] = 32.0
        assert rotation.forward(spike).abs().tolist() == pytest.approx([1.0] * 1024)

    def test_single_precision_is_left_before_rotating(self) -> None:
        rotation = Rotation.draw(4, torch.Generator().manual_seed(1))
        assert rotation.forward(torch.ones(2, 4)).dtype == torch.float64

    def test_signs_for_another_length_are_refused(self) -> None:
        with pytest.raises(InvalidInput, match="5 coordinates are rotated with 8 signs"):
            Rotation(5, torch.ones(5))


class TestRounding:
    def test_by_hand(self) -> None:
        values = torch.tensor([2.25, 2.25, -2.25, -2.25, 3.0, -3.0], dtype=torch.float64)
        coins = torch.tensor([0.24, 0.25, 0.74, 0.75, 0.0, 0.999], dtype=torch.float64)
        drawn = round_stochastically(values, coins)
        assert drawn.tolist() == [3, 2, -2, -3, 3, -3]
        assert drawn.dtype == torch.int64

    def test_it_has_no_bias(self) -> None:
        """z-tests of 9 fractions with 400,000 draws each at 6: a false-alarm rate of 2e-8.

        Rounding to the nearest integer would be off by up to 0.4, z = 500.
        """
        fractions = torch.tensor([-7.9, -2.5, -0.3, -1e-3, 1e-3, 0.1, 0.5, 3.7, 1e9 + 0.25], dtype=torch.float64)
        n = 400_000
        coins = torch.stack([streams(0, seed=i).uniform([n])[0] for i in range(len(fractions))])
        excess = round_stochastically(fractions[:, None].expand(-1, n), coins).double() - fractions[:, None]
        share = fractions - fractions.floor()
        assert bool((excess.mean(dim=1).abs() / (share * (1 - share) / n).sqrt() < 6).all())

    @given(st.integers(min_value=1, max_value=200), st.floats(min_value=0.01, max_value=1e6), SEEDS)
    def test_no_rounding_leaves_its_bounds(self, dimension: int, norm: float, seed: int) -> None:
        values = vectors(seed, 4, dimension, norm)
        drawn = round_stochastically(values, streams(0, 1, 2, 3, seed=seed).uniform([dimension] * 4))
        assert bool(((drawn - values).abs() < 1).all())
        assert float(drawn.double().norm(dim=1).max()) <= l2_after_rounding(norm, dimension, retry=0.0)

    @given(st.integers(min_value=1, max_value=200), st.floats(min_value=0.01, max_value=1e6), SEEDS)
    def test_no_conditional_rounding_leaves_the_smaller_bound(self, dimension: int, norm: float, seed: int) -> None:
        values, limit = vectors(seed, 4, dimension, norm), l2_after_rounding(norm, dimension)
        drawn = round_conditionally(values, norm, limit, streams(0, 1, 2, 3, seed=seed).uniform)
        assert drawn.dtype == torch.int64
        assert float(drawn.double().norm(dim=1).max()) <= limit
        assert bool(((drawn - values).abs() < 1).all())

    def test_a_limit_that_binds_is_kept_by_drawing_again(self) -> None:
        """200 vectors of 64 halves: of norm 4 before, √32 on average after, and here never above √30."""
        values = torch.full((1, 200, 64), 0.5, dtype=torch.float64)
        free = round_stochastically(values, streams(0).uniform([200 * 64]).reshape(1, 200, 64)).double().norm(dim=2)
        kept = round_conditionally(values, 4.0, math.sqrt(30), streams(0).uniform).double().norm(dim=2)
        assert bool((free > math.sqrt(30)).any())
        assert float(kept.max()) <= math.sqrt(30)

    def test_a_client_rounds_the_same_whoever_shares_its_block(self) -> None:
        values = torch.full((2, 50, 64), 0.5, dtype=torch.float64)
        stream, alone = streams(3, 7), streams(7)
        together = round_conditionally(values, 4.0, math.sqrt(30), stream.uniform)
        assert torch.equal(round_conditionally(values[1:], 4.0, math.sqrt(30), alone.uniform)[0], together[1])
        assert torch.equal(stream.uniform([4, 4])[1], alone.uniform([4])[0])  # and goes on from the same place

    def test_the_chance_of_a_try_is_as_large_as_the_theorem_says(self) -> None:
        """At least 1 − e^-½ = 0.393 for vectors of four kinds; 20,000 tries each: z = 6 below it is 1e-9."""
        dimension, norm = 64, 3.0
        limit = l2_after_rounding(norm, dimension)
        for values in (
            torch.full((dimension,), norm / 8),
            torch.nn.functional.one_hot(torch.tensor(3), dimension) * (norm - 0.5),
            torch.full((dimension,), 0.01),
            vectors(4, 2, dimension, norm)[1],
        ):
            coins = streams(0).uniform([20_000 * dimension]).reshape(20_000, dimension)
            drawn = round_stochastically(values.double().expand(20_000, -1), coins).double().norm(dim=1)
            assert float((drawn <= limit).double().mean()) > 1 - math.exp(-0.5) - 6 * math.sqrt(0.25 / 20_000)

    @given(st.integers(min_value=1, max_value=64), st.floats(min_value=0.01, max_value=1e4), SEEDS)
    def test_a_rounded_sum_moves_by_no_more_than_its_bound_between_neighbours(
        self, dimension: int, norm: float, seed: int
    ) -> None:
        """The same coins, with and without one vector out of five; also where the vector only just moves each cell."""
        bound = l2_of_rounded_sum(norm, dimension, vectors=5)
        added = vectors(seed, 5, dimension, norm)
        coins = streams(0, seed=seed).uniform([dimension])[0]
        edge = coins - added[0] / 2  # ⌈y − u⌉ is about to move in both directions
        for others in (added[1:].sum(dim=0), edge, edge.round()):
            for one in (added[0], added[1], -added[1], added[1].sign() * norm / math.sqrt(dimension)):
                moved = round_stochastically(others + one, coins) - round_stochastically(others, coins)
                assert float(moved.double().norm()) <= bound

    def test_the_bound_of_a_rounded_sum_is_nearly_reached(self) -> None:
        """A vector that adds next to nothing in each of 100 cells moves them all: norm 10, where √d = 10."""
        coins = torch.full((100,), 0.5, dtype=torch.float64)
        moved = round_stochastically(coins + 1e-9, coins) - round_stochastically(coins, coins)
        assert float(moved.double().norm()) == 10.0
        assert l2_of_rounded_sum(1e-8, 100) == pytest.approx(10.0)

    def test_a_vector_over_its_bound_is_refused(self) -> None:
        with pytest.raises(InvalidInput, match=r"norm at most 1 are rounded here, and one has 1\.41"):
            round_conditionally(torch.ones(1, 2), 1.0, 5.0, streams(0).uniform)

    def test_a_limit_that_nothing_can_keep_is_refused(self) -> None:
        with pytest.raises(InvalidInput, match=r"never had a norm of at most 0\.5"):
            round_conditionally(torch.ones(1, 2), 2.0, 0.5, streams(0).uniform)

    @pytest.mark.parametrize("value", [2.0**52, -(2.0**60), math.inf, math.nan])
    def test_what_int64_or_a_double_could_not_hold_is_refused(self, value: float) -> None:
        with pytest.raises(InvalidInput, match=r"within ±2\^52"):
            round_stochastically(torch.tensor([value]), torch.tensor([0.5]))

    def test_a_block_of_tensors_is_one_vector_in_doubles_and_comes_back(self) -> None:
        block = {"w": torch.randn(2, 3, 4), "b": torch.randn(2, 5)}
        flat = flatten_block(block)
        assert (flat.shape, flat.dtype) == ((2, 17), torch.float64)
        assert torch.equal(flatten_block(dict(reversed(block.items()))), flat)
        back = unflatten(flat, {name: value[0] for name, value in block.items()})
        assert all(torch.equal(back[name], value.double()) for name, value in block.items())
        assert list(back) == list(block)


class TestRing:
    @given(st.integers(min_value=-(2**62), max_value=2**62), st.integers(min_value=2, max_value=62))
    def test_centring_is_the_residue_next_to_zero(self, number: int, bits: int) -> None:
        found = int(to_signed(torch.tensor([number]), bits)[0])
        assert -(2 ** (bits - 1)) <= found < 2 ** (bits - 1)
        assert (found - number) % 2**bits == 0
        assert int(wrap_into_ring(torch.tensor([number]), bits)[0]) == number % 2**bits

    @given(st.lists(st.integers(min_value=-(2**30), max_value=2**30), min_size=1, max_size=50))
    def test_a_sum_of_residues_is_the_sum_if_that_fits(self, numbers: list[int]) -> None:
        parts = torch.tensor(numbers)
        assert int(to_signed(wrap_into_ring(parts, 40).sum(), 40)) == sum(numbers)

    def test_a_sum_outside_comes_back_shifted_not_cut_off(self) -> None:
        assert to_signed(torch.tensor([127, 128, -128, -129, 300]), 8).tolist() == [127, -128, -128, 127, 44]
        assert decode_sum(torch.tensor([255, 4]), 8, scale=2.0).tolist() == [-0.5, 2.0]

    def test_sums_beyond_int64_are_right_modulo_the_ring(self) -> None:
        many = torch.full((8,), 2**61 + 3)
        assert int(wrap_into_ring(many.sum(), 62)) == (8 * (2**61 + 3)) % 2**62

    def test_floats_and_impossible_widths_are_refused(self) -> None:
        with pytest.raises(InvalidInput, match="holds int64, and got float64"):
            wrap_into_ring(torch.ones(1, dtype=torch.float64), 8)
        with pytest.raises(InvalidInput, match="between 2 and 62 bits, and got 63"):
            wrap_into_ring(torch.ones(1, dtype=torch.int64), 63)


def plan(**changed: object) -> SumPlan:
    """Heikkilä's Fashion-MNIST network: ten clients, σ = 6.822."""
    paper = {"bits": 24, "vectors": 10, "clip_norm": 1.0, "dimension": 26_010, "noise_deviation": 6.822, "shares": 10}
    return SumPlan(**(paper | changed))  # type: ignore[arg-type]


class TestScale:
    @pytest.mark.parametrize("bits", [12, 16, 24])
    @pytest.mark.parametrize("noise", ["skellam", "discrete_gaussian"])
    @pytest.mark.parametrize("rotated", [False, True])
    def test_the_probability_that_was_asked_for_is_kept_and_used(self, bits: int, noise: str, rotated: bool) -> None:
        found = fit_scale(plan(bits=bits, noise=noise, rotated=rotated), wraparound=1e-9)
        assert found.by == "ring"
        assert found.wraparound <= 1e-9
        assert wraparound_probability(plan(bits=bits, noise=noise, rotated=rotated), 1.001 * found.scale) > 1e-9

    def test_rotated_it_is_the_closed_form_of_the_papers_with_its_own_number_of_deviations(self) -> None:
        """2·d·e^(−k²/2) = 1e-9 gives k = 7.97 in place of 3 or 4, which say nothing of 26,010 coordinates at once."""
        k = math.sqrt(2 * math.log(2 * 26_010 / 1e-9))
        closed = scale_for_bits(20, 1.0, 10, 26_010, 6.822 / math.sqrt(10), deviations=k)
        assert fit_scale(plan(bits=20, rotated=True), 1e-9).scale == pytest.approx(closed, rel=1e-4)
        assert wraparound_probability(plan(bits=20, rotated=True), closed * k / 3) == 1.0

    def test_unrotated_the_signal_is_taken_at_its_worst(self) -> None:
        """Without noise ten vectors of 100 + 1 at most: 1010 < 1023, so 11 bits hold them for certain, and not 10.2."""
        silent = plan(bits=11, noise_deviation=0.0)
        assert wraparound_probability(silent, 100.0) == 0.0
        assert wraparound_probability(silent, 101.4) == 1.0
        assert fit_scale(silent).scale == pytest.approx(101.3, rel=1e-6)

    def test_a_wide_ring_is_limited_by_the_sampler(self) -> None:
        found = fit_scale(plan(bits=40))
        assert found.by == "sampler"
        assert found.share_variance / 2 == pytest.approx(LARGEST_RATE)
        assert found.wraparound < 1e-300
        draw_skellam(bytes(32), found.share_variance, (3,), secret_generator)  # and is not refused

    def test_without_noise_doubles_end_the_scale_of_a_huge_ring(self) -> None:
        found = fit_scale(plan(bits=62, noise_deviation=0.0))
        assert (found.by, found.norm, found.wraparound) == ("doubles", 2.0**50, 0.0)

    @pytest.mark.parametrize("chance", [0.0, 1.0, -1e-9, math.nan])
    def test_a_chance_that_is_none_is_refused(self, chance: float) -> None:
        with pytest.raises(InvalidInput, match="must lie between 0 and 1"):
            fit_scale(plan(), wraparound=chance)

    def test_the_sensitivities_are_those_after_rounding(self) -> None:
        coarse, fine = fit_scale(plan(bits=13, clip_norm=2.0)), fit_scale(plan(bits=20, clip_norm=2.0))
        for found in (coarse, fine):
            assert found.norm == 2.0 * found.scale
            assert found.l2_sensitivity == l2_after_rounding(found.norm, 26_010)
        assert coarse.l1_sensitivity == coarse.l2_sensitivity**2  # below √d = 161: all ones
        assert fine.l1_sensitivity == fine.l2_sensitivity * math.sqrt(26_010)

    @settings(max_examples=30)
    @given(
        bits=st.integers(min_value=8, max_value=40),
        vectors=st.integers(min_value=1, max_value=60),
        deviation=st.floats(min_value=1e-3, max_value=100),
        rotated=st.booleans(),
    )
    def test_more_noise_more_vectors_or_fewer_bits_never_allow_a_finer_lattice(
        self, bits: int, vectors: int, deviation: float, rotated: bool
    ) -> None:
        """Rotated vectors are left out where rounding alone, a whole unit a vector, fills a small ring."""
        asked = {"bits": bits, "vectors": vectors, "noise_deviation": deviation, "rotated": rotated}
        found = fit_scale(plan(**asked)).scale
        worse = [asked | {"vectors": vectors + 1}, asked | {"noise_deviation": 2 * deviation}]
        assert all(fit_scale(plan(**each)).scale <= found * (1 + 1e-8) for each in worse)
        assert fit_scale(plan(**(asked | {"bits": bits + 1}))).scale >= found * (1 - 1e-8)

    def test_a_ring_that_rounding_alone_fills_is_refused(self) -> None:
        with pytest.raises(InvalidInput, match="8 bits is too small for 200 rounded vectors"):
            fit_scale(plan(bits=8, vectors=200))
        with pytest.raises(InvalidInput, match="between 2 and 62 bits, and got 64"):
            plan(bits=64)

    @pytest.mark.parametrize("noise", ["skellam", "discrete_gaussian"])
    def test_wraparounds_happen_no_oftener_than_stated(self, noise: str) -> None:
        """Worst signal in one coordinate out of one, asked for 0.2: of 200,000 sums at most 0.2 + 6σ leave the ring.

        The bound is Chernoff's on both sides, so fewer do; that some do shows that the ring was used.
        """
        asked = plan(bits=8, vectors=3, dimension=1, noise_deviation=2.0, shares=4, noise=noise)
        found = fit_scale(asked, wraparound=0.2)
        draw = {"skellam": draw_skellam, "discrete_gaussian": draw_discrete_gaussian}[noise]
        shares = [draw(bytes([i] * 32), found.share_variance, (200_000,), secret_generator) for i in range(4)]
        total = torch.from_numpy(np.sum(shares, axis=0)) + 3 * math.ceil(found.norm)
        left = float((to_signed(total, 8) != total).double().mean())
        assert 0.005 < left <= 0.2 + 6 * math.sqrt(0.16 / 200_000)

    def test_rotated_wraparounds_happen_no_oftener_than_stated(self) -> None:
        """2,000 rotations of one vector that all clients share: a coordinate leaves in at most 0.3 of them."""
        asked = plan(bits=12, vectors=3, dimension=64, noise_deviation=0.5, shares=1, rotated=True)
        found = fit_scale(asked, wraparound=0.3)
        shared = torch.randn(64, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
        shared *= 3 * found.norm / shared.norm()
        noise = draw_skellam(bytes(32), found.share_variance, (2000, 64), secret_generator)
        left = 0
        for i in range(2000):
            rotation = Rotation.draw(64, torch.Generator().manual_seed(i))
            total = rotation.forward(shared).round().to(torch.int64) + torch.from_numpy(noise[i])
            left += bool((to_signed(total, 12) != total).any())
        assert 0 < left / 2000 <= 0.3 + 6 * math.sqrt(0.21 / 2000)


def test_a_sum_of_clients_survives_the_whole_way() -> None:
    """Rotate, scale, round, share, wrap, sum, centre, decode, rotate back: off by the noise and rounding alone.

    500 coordinates with noise of deviation 0.05 and rounding far below: |error| < 0.05·7 has a false-alarm rate of
    500·2.6e-12 ≈ 1e-9.
    """
    asked = SumPlan(
        bits=32, vectors=4, clip_norm=1.0, dimension=padded_dimension(500), noise_deviation=0.05, shares=4, rotated=True
    )
    found, rotation = fit_scale(asked), Rotation.draw(500, torch.Generator().manual_seed(9))
    clients = vectors(1, 4, 500, 1.0)
    stream = streams(0, 1, 2, 3)
    scaled = found.scale * rotation.forward(clients)
    integers = round_conditionally(scaled, found.norm, found.l2_sensitivity, stream.uniform)
    shares = stream.skellam({"": torch.zeros(512)}, found.share_variance)[""]
    total = wrap_into_ring(wrap_into_ring(integers + shares, 32).sum(dim=0), 32)
    recovered = rotation.inverse(decode_sum(total, 32, found.scale))
    error = recovered - clients.sum(dim=0)
    assert float(error.abs().max()) < 0.35
    assert float(error.square().mean().sqrt()) == pytest.approx(0.05, rel=0.2)
