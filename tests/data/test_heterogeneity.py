"""The degree of non-IID Γ = F* − Σ p_k·F_k*, and how far labels differ, where both are known in closed form."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.data.federation import Federation
from discreet.data.heterogeneity import Heterogeneity, label_distance, measure_heterogeneity


def numbers(*clients: list[tuple[float, float]]) -> Federation:
    """Clients of (input, target) pairs."""
    rows = torch.tensor([row for client in clients for row in client])
    return Federation(rows[:, :1], rows[:, 1], tuple(map(len, clients)))


def classes(*clients: list[tuple[float, int]]) -> Federation:
    rows = [row for client in clients for row in client]
    inputs = torch.tensor([[each] for each, _ in rows])
    return Federation(inputs, torch.tensor([label for _, label in rows]), tuple(map(len, clients)))


def regression(data: Federation) -> Heterogeneity:
    return measure_heterogeneity(data, "regression", 1)


def test_two_clients_with_targets_plus_and_minus_one_are_all_of_the_loss_apart():
    """The input is uninformative: the best joint model is 0 everywhere, with error 1; each client alone has none."""
    found = regression(numbers([(0.0, 1.0)] * 3, [(0.0, -1.0)] * 3))
    assert (found.pooled_loss, found.own_loss, found.gamma, found.share) == pytest.approx((1, 0, 1, 1))
    assert (found.iterations, found.label_distance) == (0, None)


def test_a_client_counts_by_its_share_of_the_examples():
    """Three of four examples at +1: the best joint model is 1/2, and its error ¾·¼ + ¼·(3/2)² = ¾."""
    assert regression(numbers([(0.0, 1.0)] * 3, [(0.0, -1.0)])).gamma == pytest.approx(0.75)


def test_what_no_client_can_fit_either_is_no_difference():
    """Targets m ± 1 at one input: each client alone has a loss of 1, and the means m = ±2 add 4."""
    found = regression(numbers([(0.0, 3.0), (0.0, 1.0)], [(0.0, -3.0), (0.0, -1.0)]))
    assert (found.pooled_loss, found.own_loss, found.gamma) == pytest.approx((5, 1, 4))


def test_clients_that_one_line_fits_do_not_differ_however_far_apart_they_lie():
    found = regression(numbers([(0.0, 1.0), (1.0, 3.0)], [(5.0, 11.0), (9.0, 19.0)]))
    assert found.gamma == pytest.approx(0, abs=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.floats(-2, 2, width=32), st.floats(-2, 2, width=32)), min_size=1, max_size=8))
def test_identical_clients_have_no_gamma(rows: list[tuple[float, float]]):
    assert regression(numbers(rows, rows, rows)).gamma == pytest.approx(0, abs=1e-9)


def test_identical_clients_have_no_gamma_in_classification_either():
    """The search for each client's model starts from the joint model, which is already optimal."""
    client = [(0.0, 0), (0.0, 1), (1.0, 1), (1.0, 0), (1.0, 1)]
    found = measure_heterogeneity(classes(client, client), "classification", 2)
    assert found.gamma == pytest.approx(0, abs=1e-6)
    assert (found.label_distance, found.iterations) == (0.0, 500)


def test_the_losses_of_a_classifier_without_inputs_are_the_entropies_of_its_labels():
    """Labels ¾ and ¼ against ¼ and ¾: together one bit, and each client alone the entropy of ¼."""
    one, other = [(0.0, 0)] * 3 + [(0.0, 1)], [(0.0, 0)] + [(0.0, 1)] * 3
    found = measure_heterogeneity(classes(one, other), "classification", 2)
    entropy = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    assert found.pooled_loss == pytest.approx(math.log(2), abs=1e-6)
    assert found.own_loss == pytest.approx(entropy, abs=1e-6)
    assert found.gamma == pytest.approx(math.log(2) - entropy, abs=1e-6)


def test_clients_of_one_label_each_differ_by_nearly_all_of_the_loss():
    found = measure_heterogeneity(classes([(0.0, 0)] * 4, [(0.0, 1)] * 4), "classification", 2)
    assert found.share > 0.99
    assert found.label_distance == pytest.approx(0.5)


def test_an_estimate_is_never_negative_even_after_one_iteration():
    data = classes([(0.0, 0), (1.0, 1)], [(2.0, 1), (0.5, 0), (0.1, 1)])
    assert measure_heterogeneity(data, "classification", 2, iterations=1).gamma >= 0


def test_clients_in_several_blocks_give_what_they_give_in_one(monkeypatch: pytest.MonkeyPatch):
    generator = torch.Generator().manual_seed(0)
    inputs, labels = torch.randn(60, 3, generator=generator), torch.randint(3, (60,), generator=generator)
    data = Federation(inputs, labels, (5, 20, 15, 12, 8), order=torch.randperm(60, generator=generator))
    whole = measure_heterogeneity(data, "classification", 3)
    monkeypatch.setattr("discreet.data.heterogeneity.BLOCK", 2)
    assert measure_heterogeneity(data, "classification", 3).gamma == pytest.approx(whole.gamma, rel=1e-9)


def test_labels_lie_half_their_summed_difference_apart():
    """Shares (1, 0, 0) and (0, ½, ½) of three labels; pooled, with one and two examples, (⅓, ⅓, ⅓)."""
    data = classes([(0.0, 0)], [(0.0, 1), (0.0, 2)])
    assert label_distance(data, 3) == pytest.approx((2 / 3 + 1 / 3) / 2)


def draw_examples(generator: torch.Generator, clients: int, each: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw inputs whose last is the sum of the two before it, and targets with noise of variance 1."""
    inputs = torch.randn(clients * each, 2, generator=generator)
    return torch.cat([inputs, inputs.sum(dim=1, keepdim=True)], dim=1), torch.randn(clients * each, generator=generator)


def test_clients_of_one_distribution_show_about_the_gamma_of_chance():
    """Rank 3 with the constant: 200 residual sums of χ²(17) against one of χ²(3997), so Γ is 199·3/4000 on average.

    nΓ is χ²(597), which lies further than 190 from 597 with a chance of 3e-7.
    """
    inputs, noise = draw_examples(torch.Generator().manual_seed(0), 200, 20)
    found = regression(Federation(inputs, 2 * inputs[:, 0] + noise, (20,) * 200))
    assert found.gamma == pytest.approx(199 * 3 / 4000, abs=190 / 4000)
    assert found.gamma_by_chance == pytest.approx(199 * 3 / 4000 * found.pooled_loss)


def test_chance_counts_half_for_each_class_but_one():
    """Three classes that follow from nothing: 2nΓ is about χ²(114), by Wilks: a false alarm of 5e-7."""
    inputs, _ = draw_examples(torch.Generator().manual_seed(1), 20, 200)
    labels = torch.randint(3, (4000,), generator=torch.Generator().manual_seed(2))
    found = measure_heterogeneity(Federation(inputs, labels, (200,) * 20), "classification", 3)
    assert found.gamma_by_chance == pytest.approx(19 * 3 * 2 / 2 / 4000)
    assert found.gamma == pytest.approx(found.gamma_by_chance, abs=90 / 8000)
