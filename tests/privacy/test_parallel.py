"""Parallel composition: the worst client decides, or the worst few where clients overlap."""

from itertools import combinations

import pytest

from discreet.privacy import accountant, parallel_composition
from discreet.privacy.events import Composed, Repeated
from tests.privacy.recipes import gaussian, laplace

LIGHT, HEAVY = gaussian(4.0, rate=0.1, times=20), gaussian(1.0, rate=0.1, times=20)


def test_disjoint_clients_cost_what_the_worst_of_them_costs() -> None:
    assert parallel_composition.epsilon([LIGHT] * 50 + [HEAVY], 1e-5) == accountant.epsilon(HEAVY, 1e-5)


def test_a_unit_in_three_alike_clients_pays_three_times() -> None:
    paid = parallel_composition.epsilon([HEAVY] * 10, 1e-5, max_multiplicity=3)
    assert paid == accountant.epsilon(Repeated(count=3, event=HEAVY), 1e-5)


def test_a_unit_cannot_be_in_more_clients_than_there_are() -> None:
    paid = parallel_composition.epsilon([HEAVY, LIGHT], 1e-5, max_multiplicity=5)
    assert paid == accountant.epsilon(Composed(events=(HEAVY, LIGHT)), 1e-5)


def test_the_worst_selection_takes_the_one_heavy_client_once() -> None:
    paid = parallel_composition.epsilon([HEAVY] + [LIGHT] * 9, 1e-5, max_multiplicity=2)
    assert paid == accountant.epsilon(Composed(events=(HEAVY, LIGHT)), 1e-5)


def test_the_overlap_of_pfl_at_its_settings() -> None:
    """MNIST, batches of 64, noise for a nominal 2.93 by RDP: a record held by four clients really costs 5.58."""
    client = gaussian(1.007, rate=1 / 94, times=20 * 94)
    assert parallel_composition.epsilon([client] * 10, 1e-5) == pytest.approx(2.64, abs=0.01)
    assert parallel_composition.epsilon([client] * 10, 1e-5, max_multiplicity=4) == pytest.approx(5.58, abs=0.01)


def test_of_many_unlike_clients_the_costliest_few_compose_exactly() -> None:
    clients = [gaussian(1.0 + i / 50, rate=0.1, times=20) for i in range(40)]
    paid = parallel_composition.epsilon(clients, 1e-5, max_multiplicity=3)
    assert paid == accountant.epsilon(Composed(events=tuple(clients[:3])), 1e-5)


def test_no_choice_of_clients_costs_more_than_is_reported() -> None:
    """Clients of which none is the worst in every respect, some of them twice."""
    settings = [(1.0, 0.05, 20), (1.5, 0.2, 20), (1.5, 0.2, 10), (0.8, 0.02, 60), (2.0, 0.2, 60), (1.0, 0.05, 10)]
    clients = [gaussian(z, rate=rate, times=times) for z, rate, times in settings]
    clients += clients[3:]
    for size in (2, 3):
        exact = max(accountant.epsilon(Composed(events=chosen), 1e-5) for chosen in combinations(clients, size))
        paid = parallel_composition.epsilon(clients, 1e-5, max_multiplicity=size)
        assert paid == pytest.approx(exact, rel=1e-12)


def test_many_clients_that_cannot_be_ranked_fall_back_to_their_renyi_curves_and_stay_sound() -> None:
    clients = [laplace(5.0 + i / 50, rate=0.1, times=20) for i in range(40)]
    paid = parallel_composition.epsilon(clients, 1e-5, max_multiplicity=3)
    worst_three = Composed(events=tuple(clients[:3]))
    assert accountant.epsilon(worst_three, 1e-5) <= paid <= 1.3 * accountant.epsilon(worst_three, 1e-5)


def test_thousands_of_clients_need_few_exact_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    exact = accountant.epsilon
    monkeypatch.setattr(accountant, "epsilon", lambda *args: asked.append(args) or exact(*args))
    clients = [gaussian(1.0 + (i % 71) / 71, rate=0.01 + (i % 89) / 890, times=20 + i % 7) for i in range(5000)]
    worst = parallel_composition.epsilon(clients, 1e-5)
    assert len(asked) < 30
    assert worst == pytest.approx(max(exact(each, 1e-5) for each in clients[::50] + [args[0] for args in asked]))


def test_nobody_pays_nothing() -> None:
    assert parallel_composition.epsilon([], 1e-5) == 0.0


def test_clients_without_sampling_and_with_other_noise_are_compared_too() -> None:
    """Of unsampled Gaussians only the one with the least noise and the most steps remains; Laplace noise stays."""
    clients = [gaussian(z, times=times) for z, times in ((5.0, 3), (4.0, 3), (4.0, 2))] + [laplace(3.0, times=4)]
    worst = max(accountant.epsilon(each, 1e-5) for each in clients)
    assert parallel_composition.epsilon(clients, 1e-5) == worst
