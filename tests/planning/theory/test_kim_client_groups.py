"""All of Kim, Günlü & Schaefer 2021 together: rows of client groups, and the utility of different clients."""

import pytest

from discreet.errors import InvalidInput
from discreet.planning.theory import kim_exact_noise
from discreet.planning.theory.kim_client_groups import (
    MEAN,
    MINIBATCH,
    PER_EXAMPLE,
    Group,
    evaluate_groups,
    group_rows,
    joint_row,
)
from discreet.planning.theory.kim_noise_bounds import FORMS, Promise
from discreet.planning.theory.kim_utility import Learning

PROMISE = Promise(epsilon=1.0, delta=1e-5, sampling_rate=0.02, rounds=200)
WHOLE = Learning(rounds=200, dimension=30, clip_norm=2.0, gradient_bound=2.0)  # nothing is clipped


def test_every_way_to_count_is_priced_at_what_it_hands_out() -> None:
    found = group_rows(Group(clients=3, promise=PROMISE), WHOLE)
    assert list(found) == [*FORMS, PER_EXAMPLE, MINIBATCH]
    for name in FORMS:
        row = found[name]
        assert row.applied_variance == max(row.noise_variance, 1.0)
        assert row.certified_epsilons == {
            clipping: kim_exact_noise.certified_epsilon(clipping, row.applied_variance, PROMISE)
            for clipping in ("per_example", "minibatch")
        }
    assert set(found[MINIBATCH].certified_epsilons) == {"minibatch"}


def test_where_examples_are_known_their_mean_has_the_noise_of_the_sum_over_the_expected_batch() -> None:
    found = group_rows(Group(clients=3, promise=PROMISE, examples=250), WHOLE)
    assert found[MEAN].applied_variance == pytest.approx(found[PER_EXAMPLE].applied_variance / 5**2)


def test_what_sums_of_examples_prove_counts_that_batches_vary() -> None:
    """Four clients of 250 examples at 0.02: 20 in all, so E‖gradient‖² ≤ G²·(1 + 0.98/20)."""
    group = Group(clients=4, promise=PROMISE, examples=250)
    row = group_rows(group, WHOLE)[MEAN]
    found = joint_row([group], [row], WHOLE, of_sums=True)
    assert found.noise_variance == pytest.approx(row.applied_variance / 4)
    noisy = 4 * (1 + 0.98 / 20) + 30 * 4 * found.noise_variance
    assert found.utility.proved_bound == pytest.approx(200 / max(8, noisy))
    _, both = evaluate_groups([group, group], WHOLE)
    assert both[MEAN].noise_variance == pytest.approx(found.noise_variance / 2)


def test_groups_without_examples_weigh_by_their_rates_alone() -> None:
    often = Group(clients=1, promise=PROMISE)
    seldom = Group(clients=1, promise=Promise(epsilon=1.0, delta=1e-5, sampling_rate=0.01, rounds=200))
    each, found = evaluate_groups([often, seldom], WHOLE)
    noises = [by["ac2"].applied_variance for by in each]
    assert found["ac2"].noise_variance == pytest.approx((4 * noises[0] + noises[1]) / 9)


def test_sizes_that_are_known_of_some_only_can_not_be_compared() -> None:
    groups = [Group(clients=1, promise=PROMISE, examples=5), Group(clients=1, promise=PROMISE)]
    with pytest.raises(InvalidInput, match="to all of them, or to none"):
        evaluate_groups(groups, WHOLE)
