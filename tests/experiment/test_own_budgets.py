"""Clients with their own budgets: each is kept, each has its line, and a client whose budget is spent leaves."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from discreet.algorithms.population import Population
from discreet.algorithms.recipes.ddp_fedavg import ddp_fedavg
from discreet.algorithms.recipes.fl_sgd_gaussian import fl_sgd_gaussian
from discreet.algorithms.recipes.pfl import pfl
from discreet.errors import BudgetRefused, InvalidInput, UnsoundCombination, Unsupported
from discreet.experiment.loop import training_loop
from discreet.experiment.promise import calibrate, run_spending
from discreet.experiment.promise.promise import Privacy, client_groups
from discreet.experiment.run_directory.run_data import read_run
from discreet.privacy import accountant
from discreet.privacy.events import GaussianNoise, PoissonSampled, Repeated
from discreet.privacy.guarantee import Guarantee, split_by_largest_epsilon
from discreet.privacy.ledger import Budget, Ledger
from discreet.privacy.release import Release
from discreet.report.run_page import write
from discreet.report.verdict import judge
from tests.small_experiment import PrepareJob

PEOPLE = Population(examples=(50, 50, 50))
OWN = Privacy(unit="example", against="server", epsilon=(1.0, 2.0, 2.0), delta=1e-5)
OPEN = fl_sgd_gaussian(learning_rate=1.0, clip_norm=1.0, sampling_rate=0.1)


def ignore(line: dict[str, Any]) -> None:
    pass


def epsilon(noise: float, rounds: int, rate: float = 0.1, delta: float = 1e-5) -> float:
    step = PoissonSampled(sampling_rate=rate, event=GaussianNoise(noise_multiplier=noise))
    return accountant.epsilon(Repeated(count=rounds, event=step), delta, "zero_out")


def test_each_client_gets_the_noise_that_its_own_epsilon_takes():
    kept = calibrate.calibrate_noise(OPEN, OWN, 30, PEOPLE)
    first, *others = kept.trainer.noise_multiplier  # type: ignore[union-attr, misc]
    assert epsilon(first, 30) == pytest.approx(1.0, rel=1e-3)
    assert others[0] == others[1]
    assert epsilon(others[0], 30) == pytest.approx(2.0, rel=1e-3)
    assert run_spending.spent_epsilon(kept, OWN, 30, PEOPLE) == pytest.approx(2.0, rel=1e-3)
    assert run_spending.round_limits(kept, OWN, 30, PEOPLE) == {}


def test_a_client_with_little_noise_can_pay_for_fewer_rounds():
    given = fl_sgd_gaussian(learning_rate=1.0, clip_norm=1.0, sampling_rate=0.1, noise_multiplier=(1.1, 2.0, 2.0))
    wanted = Privacy(unit="example", against="server", epsilon=2.0, delta=1e-5)
    assert calibrate.calibrate_noise(given, wanted, 30, PEOPLE) == given
    left = run_spending.round_limits(given, wanted, 30, PEOPLE)
    assert set(left) == {0}
    assert epsilon(1.1, left[0]) <= 2.0 < epsilon(1.1, left[0] + 1)
    spent = run_spending.spent_epsilon(given, wanted, 30, PEOPLE, left)
    assert spent == max(epsilon(1.1, left[0]), epsilon(2.0, 30))


def test_where_nobody_lasts_to_the_end_it_is_refused():
    given = fl_sgd_gaussian(learning_rate=1.0, clip_norm=1.0, sampling_rate=0.1, noise_multiplier=(1.1, 1.2, 1.2))
    wanted = Privacy(unit="example", against="server", epsilon=2.0, delta=1e-5)
    with pytest.raises(BudgetRefused, match=r"given for client 0 spends epsilon .* affords \d+ rounds"):
        calibrate.calibrate_noise(given, wanted, 300, PEOPLE)


def test_a_client_that_can_not_pay_for_one_round_is_refused_by_name():
    given = fl_sgd_gaussian(learning_rate=1.0, clip_norm=1.0, sampling_rate=0.1, noise_multiplier=(2.0, 0.5, 2.0))
    wanted = Privacy(unit="example", against="server", epsilon=2.0, delta=1e-5)
    with pytest.raises(BudgetRefused, match=r"given for client 1 spends epsilon .* affords 0 rounds"):
        calibrate.calibrate_noise(given, wanted, 30, PEOPLE)


def test_own_budgets_are_budgets_of_the_ledger(tmp_path: Path):
    kept = calibrate.calibrate_noise(OPEN, OWN, 30, PEOPLE)
    budgets = run_spending.run_budgets(kept, OWN, 30, PEOPLE)
    assert [(each.clients, each.epsilon) for each in budgets] == [((0,), 1.0), ((1, 2), 2.0)]
    ledger = Ledger.create(tmp_path / "ledger.jsonl", budgets)
    ledger.reserve("all", kept.planned_releases(30, PEOPLE))
    first, second = ledger.summary()["budgets"]
    assert first["spent"] == pytest.approx(1.0, rel=1e-3)
    assert second["spent"] == pytest.approx(2.0, rel=1e-3)
    with pytest.raises(BudgetRefused, match=r"client 0.*view server, client 0"):
        ledger.reserve("one more", kept.releases(PEOPLE, 30, cohort=(0,)))


def test_a_budget_for_some_does_not_count_what_others_release(tmp_path: Path):
    of_one = Budget(unit="example", relation="zero_out", view="server", epsilon=1.0, delta=1e-5, clients=(1,))
    ledger = Ledger.create(tmp_path / "ledger.jsonl", [of_one])

    def release(*clients: int) -> Release:
        event = GaussianNoise(noise_multiplier=5.0)
        return Release(unit="example", relation="zero_out", view="server", event=event, clients=clients)

    ledger.reserve("other", [release(0, 2)])
    assert ledger.summary()["budgets"][0]["spent"] == 0
    ledger.reserve("own", [release(0, 1)])
    assert ledger.summary()["budgets"][0]["spent"] == pytest.approx(
        accountant.epsilon(GaussianNoise(noise_multiplier=5.0), 1e-5, "zero_out")
    )


def test_a_spent_client_drops_out_and_training_goes_on(prepare: PrepareJob, tmp_path: Path):
    job = prepare(
        "rounds=6",
        "seed=1",
        'algorithm={recipe="fl_sgd_gaussian", learning_rate=1.0, clip_norm=0.5, sampling_rate=0.3}',
        "algorithm.noise_multiplier=[0.8, 2.0, 3.0]",
        "privacy.epsilon=3.5",
    )
    assert set(job.round_limits) == {0}
    lasts = job.round_limits[0]
    assert 0 < lasts < 6
    ended = training_loop.start(job, tmp_path / "run", None, None, ignore)
    assert ended.stopped is None
    joined = [line["clients"] for line in ended.record.read_rounds()]
    assert joined == [3] * lasts + [2] * (6 - lasts)
    told = json.loads((tmp_path / "run" / "guarantee.json").read_text())
    assert told["left"] == [{"client": 0, "rounds": lasts}]
    spent = {card.clients: card.epsilon for card in ended.guarantees}
    assert set(spent) == {(0,), (1,), (2,)}
    assert spent[0,] == pytest.approx(epsilon(0.8, lasts, rate=0.3, delta=1e-4))
    assert spent[1,] == pytest.approx(epsilon(2.0, 6, rate=0.3, delta=1e-4))
    assert ended.guarantees[0].epsilon == max(spent.values()) <= 3.5
    card = (tmp_path / "run" / "guarantee.txt").read_text()
    assert card.count("Guarantee card") == 1
    assert "one example of client 2" in card
    ledger = Ledger.open(tmp_path / "run" / "ledger.jsonl").summary()
    assert ledger["budgets"][0]["spent"] == pytest.approx(max(spent.values()))


def test_a_resumed_run_lets_the_same_clients_go(prepare: PrepareJob, tmp_path: Path):
    settings = (
        "rounds=6",
        "seed=1",
        'algorithm={recipe="fl_sgd_gaussian", learning_rate=1.0, clip_norm=0.5, sampling_rate=0.3}',
        "algorithm.noise_multiplier=[0.8, 2.0, 3.0]",
        "privacy.epsilon=3.5",
    )
    whole = training_loop.start(prepare(*settings), tmp_path / "whole", None, None, ignore)

    class Stop(Exception):
        pass

    def watch(line: dict[str, Any]) -> None:
        if line["round"] == 5:
            raise Stop

    with pytest.raises(Stop):
        training_loop.start(prepare(*settings), tmp_path / "cut", None, None, watch)
    record = type(whole.record).open(tmp_path / "cut")
    resumed = training_loop.resume(prepare(*settings), record, None, ignore)
    for name, value in whole.state.params.items():
        assert (resumed.state.params[name] == value).all()


def test_lists_of_the_wrong_length_and_promises_that_one_noise_can_not_keep_are_refused(prepare: PrepareJob):
    with pytest.raises(InvalidInput, match=r"privacy\.epsilon must name one number for each of 3 clients, and got 2"):
        prepare("privacy.epsilon=[1.0, 2.0]")
    with pytest.raises(Unsupported, match="one noise on the sum serves all of them"):
        prepare(
            "privacy.epsilon=[1.0, 2.0, 3.0]",
            'algorithm={recipe="dp_fedavg", learning_rate=0.5, batch_size=32, clip_norm=1.0}',
            'privacy.unit="client"',
            "privacy.against=public",
        )


def test_all_alike_is_one_kind():
    (one,) = client_groups(pfl(learning_rate=1, clip_norm=1, sampling_rate=0.1), None, PEOPLE)
    assert one.clients is None
    assert [kind.clients for kind in client_groups(OPEN, OWN, PEOPLE)] == [(0,), (1, 2)]


def test_the_page_judges_each_client_by_its_own_promise(prepare: PrepareJob, tmp_path: Path):
    job = prepare(
        "rounds=2",
        'algorithm={recipe="fl_sgd_gaussian", learning_rate=1.0, clip_norm=0.5, sampling_rate=0.3}',
        "privacy.epsilon=[1.0, 2.0, 2.0]",
    )
    ended = training_loop.start(job, tmp_path / "run", None, None, ignore)
    story = read_run(ended.record.path)
    assert story.promise is not None
    assert (story.promise.epsilon, story.promise.client_epsilons) == (2.0, (1.0, 2.0, 2.0))
    assert judge(story).mood == "good"
    page = write(ended.record.path).read_text()
    assert "The guarantees of the other clients, whose numbers differ" in page
    broken = replace(story, guarantees=tuple(replace(card, epsilon=1.5) for card in story.guarantees))
    verdict = judge(broken)  # enough for clients 1 and 2, and too much for client 0
    assert verdict.mood == "bad"
    assert "spent for client 0" in verdict.sentence


def test_an_example_in_several_clients_can_not_have_several_budgets():
    """A client that leaves early and one that stays may both hold it: the steps of neither bound what is learned."""
    given = pfl(learning_rate=1, clip_norm=1, sampling_rate=0.1, noise_multiplier=1.0)
    overlapping = Population(examples=(50, 50, 50), max_multiplicity=2)
    with pytest.raises(UnsoundCombination, match="they protect it differently"):
        calibrate.calibrate_noise(given, replace(OWN, epsilon=(8.0, 100.0, 100.0)), 20, overlapping)


@pytest.mark.parametrize("noise", [None, 3.0])
def test_who_leaves_can_not_take_noise_along_that_others_lean_on(noise: float | None):
    shared = ddp_fedavg(learning_rate=1, clip_norm=1, sampling_rate=0.1, noise_multiplier=noise)
    with pytest.raises(Unsupported, match="one noise on the sum serves all"):
        calibrate.calibrate_noise(shared, OWN, 30, PEOPLE, 10)


def test_the_promised_card_comes_first_and_the_least_protected_of_its_kind():
    kept = calibrate.calibrate_noise(OPEN, OWN, 30, PEOPLE)
    promised = [
        Guarantee.certify(release, 1e-5)
        for kind in client_groups(kept, OWN, PEOPLE)
        for release in run_spending.certifiable_releases(kind, 30, PEOPLE)
    ]
    other = replace(promised[0], view="client", epsilon=50.0)
    first, rest = split_by_largest_epsilon([*promised, other])
    assert [card.epsilon for card in first] == [promised[1].epsilon, 50.0]
    assert rest == [promised[0]]
