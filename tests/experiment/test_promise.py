"""The noise is computed from the promise, by the ledger's rules, and experiments that can't keep it are refused."""

import pytest

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.mechanisms import Gaussian
from discreet.algorithms.population import Population
from discreet.algorithms.recipes.dp_fedavg import dp_fedavg
from discreet.algorithms.recipes.fedavg import fedavg
from discreet.algorithms.recipes.pfl import pfl
from discreet.algorithms.sampling import FixedSize, RoundRobin
from discreet.algorithms.training import DpSgd
from discreet.errors import BudgetRefused, InvalidInput
from discreet.experiment.promise import calibrate, run_spending
from discreet.experiment.promise.promise import ClientGroup, Privacy, client_groups
from discreet.privacy import accountant
from discreet.privacy.release import Person, Release, Unit, View

PEOPLE = Population(examples=(50,) * 20)
PFL = pfl(learning_rate=1.0, clip_norm=1.0, sampling_rate=0.1)
DP_FEDAVG = dp_fedavg(learning_rate=0.1, batch_size=10, clip_norm=1.0, sampling_rate=0.5)


def privacy(unit: Unit, against: View, epsilon: float = 2.0) -> Privacy:
    return Privacy(unit=unit, against=against, epsilon=epsilon, delta=1e-5)


def test_clients_is_another_word_for_the_view_client():
    assert privacy("example", "clients") == privacy("example", "client")


def cards(algorithm: Algorithm, wanted: Privacy | None, rounds: int = 30) -> list[Release]:
    return [
        release
        for kind in client_groups(algorithm, wanted, PEOPLE)
        for release in run_spending.certifiable_releases(kind, rounds, PEOPLE)
    ]


@pytest.mark.parametrize(
    ("algorithm", "wanted"),
    [
        (PFL, privacy("example", "server")),
        (PFL, privacy("example", "public")),
        (PFL, privacy(Person(column="patient", at_most=3), "server", epsilon=20.0)),
        (DP_FEDAVG, privacy("client", "public")),
        (DP_FEDAVG, privacy("example", "public")),
        (
            dp_fedavg(learning_rate=0.1, batch_size=10, clip_norm=1.0, sampling=FixedSize(cohort=5)),
            privacy("client", "public"),
        ),
        (
            dp_fedavg(learning_rate=0.1, batch_size=10, clip_norm=1.0, sampling=RoundRobin(cohort=5)),
            privacy("client", "public"),
        ),
    ],
)
def test_open_noise_is_the_least_that_keeps_the_promise(algorithm: Algorithm, wanted: Privacy):
    kept = calibrate.calibrate_noise(algorithm, wanted, 30, PEOPLE)
    spent = run_spending.spent_epsilon(kept, wanted, 30, PEOPLE)
    assert spent == pytest.approx(wanted.epsilon, rel=1e-3)
    assert spent is not None
    assert spent <= wanted.epsilon
    first = cards(kept, wanted)[0]
    assert (first.unit, first.view) == (wanted.unit, wanted.against)
    assert accountant.epsilon(first.event, wanted.delta, first.relation) == spent


def test_an_example_promise_costs_twice_the_noise_where_clients_are_what_is_clipped():
    whole, one = (dp_fedavg(learning_rate=0.1, batch_size=10, clip_norm=1.0) for _ in range(2))
    client = calibrate.calibrate_noise(whole, privacy("client", "public"), 30, PEOPLE).mechanism
    example = calibrate.calibrate_noise(one, privacy("example", "public"), 30, PEOPLE).mechanism
    assert isinstance(client, Gaussian)
    assert isinstance(example, Gaussian)
    assert client.noise_multiplier is not None
    assert example.noise_multiplier == pytest.approx(2 * client.noise_multiplier, rel=1e-4)


@pytest.mark.parametrize(
    ("algorithm", "wanted", "said"),
    [
        (DP_FEDAVG, privacy("client", "server"), "one client against the public.*The server adds the noise itself"),
        (DP_FEDAVG, privacy("example", "server"), "one client against the public"),
        (PFL, privacy("client", "server"), "one example against the server"),
        (PFL, privacy("example", "client"), "one example against the server"),
        (fedavg(learning_rate=0.1, batch_size=10), privacy("example", "server"), "adds no noise"),
    ],
)
def test_a_promise_that_nothing_serves_is_refused_in_a_sentence(algorithm: Algorithm, wanted: Privacy, said: str):
    with pytest.raises(InvalidInput, match=said) as refused:
        calibrate.calibrate_noise(algorithm, wanted, 30, PEOPLE)
    assert refused.value.exit_code == 2


def test_noise_that_is_given_must_keep_the_promise():
    little, enough = PFL.with_noise(0.6), PFL.with_noise(20.0)
    with pytest.raises(BudgetRefused, match=r"spends epsilon .* over 30 rounds .* and 2 is promised") as refused:
        calibrate.calibrate_noise(little, privacy("example", "server"), 30, PEOPLE)
    assert refused.value.exit_code == 3
    assert calibrate.calibrate_noise(enough, privacy("example", "server"), 30, PEOPLE) == enough


def test_open_noise_without_a_promise_is_refused_and_no_noise_without_one_is_not():
    with pytest.raises(InvalidInput, match="noise is open, and nothing is promised"):
        calibrate.calibrate_noise(PFL, None, 30, PEOPLE)
    plain = fedavg(learning_rate=0.1, batch_size=10)
    assert calibrate.calibrate_noise(plain, None, 30, PEOPLE) == plain
    assert run_spending.spent_epsilon(plain, None, 30, PEOPLE) is None
    assert cards(plain, None) == []


def test_noise_that_the_promise_says_nothing_of_is_not_made_up():
    fixed = DpSgd(steps=1, sampling_rate=0.1, clip_norm=1.0, noise_multiplier=20.0, learning_rate=1.0)
    both = Algorithm(trainer=fixed, mechanism=Gaussian(clip_norm=1.0))
    with pytest.raises(InvalidInput, match="says nothing of the noise that is open"):
        calibrate.calibrate_noise(both, privacy("example", "server"), 30, PEOPLE)


def test_a_client_level_release_also_says_something_of_one_example():
    found = cards(DP_FEDAVG.with_noise(2.0), privacy("client", "public"))
    assert [(each.unit, each.relation) for each in found] == [("client", "add_or_remove"), ("example", "replace")]
    assert found[0].event == found[1].event


def test_an_example_in_two_clients_is_not_protected_by_protecting_one_of_them():
    overlapping = Population(examples=(50,) * 20, max_multiplicity=2)
    with pytest.raises(InvalidInput, match="protects one client against the public"):
        calibrate.calibrate_noise(DP_FEDAVG, privacy("example", "public"), 30, overlapping)
    kept = calibrate.calibrate_noise(DP_FEDAVG, privacy("client", "public"), 30, overlapping)
    assert [
        each.unit for each in run_spending.certifiable_releases(ClientGroup(None, kept, None), 30, overlapping)
    ] == ["client"]


PATIENT = Person(column="patient", at_most=3)


@pytest.mark.parametrize(
    ("algorithm", "wanted", "relation"),
    [
        (PFL, privacy("example", "server"), "zero_out"),
        (PFL, privacy(PATIENT, "server", epsilon=20.0), "zero_out"),
        (DP_FEDAVG, privacy("example", "public"), "zero_out"),
        (DP_FEDAVG, privacy("client", "public"), "add_or_remove"),
    ],
)
def test_a_run_keeps_a_budget_for_what_its_releases_hide(algorithm: Algorithm, wanted: Privacy, relation: str):
    """The number of examples of a client is public, so nothing is promised for an example under add-or-remove."""
    kept = calibrate.calibrate_noise(algorithm, wanted, 30, PEOPLE)
    (budget,) = run_spending.run_budgets(kept, wanted, 30, PEOPLE)
    assert (budget.unit, budget.relation) == (wanted.unit, relation)


@pytest.mark.parametrize("unit", ["example", PATIENT])
def test_a_blank_in_its_place_takes_the_noise_that_a_removal_took(unit: Unit):
    """The relation was corrected, not the price: both leave the same sums."""
    wanted = privacy(unit, "server", epsilon=20.0)
    first = cards(calibrate.calibrate_noise(PFL, wanted, 30, PEOPLE), wanted)[0]
    assert (first.unit, first.relation) == (unit, "zero_out")
    assert accountant.epsilon(first.event, 1e-5, "zero_out") == accountant.epsilon(first.event, 1e-5, "add_or_remove")


def test_nothing_is_spent_before_the_first_round():
    assert run_spending.spent_epsilon(PFL.with_noise(1.0), privacy("example", "server"), 0, PEOPLE) == 0
    assert cards(PFL.with_noise(1.0), None, rounds=0) == []
