"""`discreet tradeoff promise`: what another ε would cost an experiment."""

from pathlib import Path

import pytest

from tests.cli.conftest import Discreet
from tests.small_experiment import SMALL


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(SMALL)
    return tmp_path


def test_a_smaller_epsilon_costs_noise_or_rounds(discreet: Discreet):
    found = discreet("tradeoff promise small.toml --epsilon 4,0.5,1 --json").json
    assert [each["epsilon"] for each in found["costs"]] == [0.5, 1, 4]
    for name, falling in (("noise_multiplier", True), ("noise_to_signal", True), ("rounds_at_this_noise", False)):
        values = [each[name] for each in found["costs"]]
        assert values == sorted(values, reverse=falling)
        assert values[0] != values[-1]
    assert found["promise"]["epsilon"] == 2


def test_today_is_what_the_plan_has(discreet: Discreet):
    today = discreet("tradeoff promise small.toml --epsilon 1 --json").json["today"]
    plan = discreet("plan small.toml --json").json
    for name in ("noise_multiplier", "noise_to_signal"):
        assert today[name] == plan[name]
    assert (today["rounds_at_this_noise"], today["times_the_noise"]) == (4, 1)
    assert today["bytes_at_these_rounds"] == {name: plan["bytes"][name] for name in ("client_expected", "all_total")}


def test_noise_that_is_found_keeps_the_promise_it_was_found_for(discreet: Discreet):
    (cost,) = discreet("tradeoff promise small.toml --epsilon 1 --json").json["costs"]
    noise = f"algorithm.noise_multiplier={cost['noise_multiplier']}"
    kept = discreet("plan small.toml --json --set privacy.epsilon=1 --set", noise).json
    assert kept["affordable_rounds"] == 4
    assert 0.99 < kept["epsilon"] <= 1
    assert kept["noise_to_signal"] == pytest.approx(cost["noise_to_signal"])


def test_noise_that_is_given_is_compared_with_what_each_epsilon_needs(discreet: Discreet):
    line = "tradeoff promise small.toml --epsilon 2"
    open_noise, given = (discreet(f"{line}{more} --json").json for more in ("", " --set algorithm.noise_multiplier=3"))
    assert given["today"]["noise_multiplier"] == 3
    assert given["costs"][0]["noise_multiplier"] == open_noise["costs"][0]["noise_multiplier"]
    assert given["costs"][0]["times_the_noise"] == open_noise["costs"][0]["noise_multiplier"] / 3


def test_a_person_reads_a_table(discreet: Discreet):
    ran = discreet("tradeoff promise small.toml --epsilon 1,4")
    assert (ran.code, ran.err) == (0, "")
    rows = [line.split() for line in ran.out.splitlines() if line.startswith("  ")]
    assert [row[0] for row in rows[1:]] == ["1", "2", "4"]
    assert rows[2][1] == "(today)"
    assert max(map(len, ran.out.splitlines())) <= 80


def test_it_can_be_drawn(discreet: Discreet, folder: Path):
    assert discreet("tradeoff promise small.toml --epsilon 1 --picture cost.svg").code == 0
    drawn = (folder / "cost.svg").read_text()
    assert drawn.count("<!-- today -->") == 3
    assert discreet("tradeoff promise small.toml --picture cost.gif").code == 2


@pytest.mark.parametrize("epsilons", ["0", "1,,2", "x", "-1", "nan"])
def test_an_epsilon_that_is_none_is_refused(epsilons: str, discreet: Discreet):
    ran = discreet(f"tradeoff promise small.toml --epsilon {epsilons}")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)


def test_where_there_is_no_one_answer_none_is_given(discreet: Discreet, folder: Path):
    differ = discreet("tradeoff promise small.toml --set privacy.epsilon=[1.0,2.0,3.0]")
    assert (differ.code, differ.out) == (2, "")
    assert "no one answer" in differ.err
    text = SMALL.split("[privacy]")[0] + '[algorithm]\nrecipe = "fedavg"\nlearning_rate = 0.1\nbatch_size = 8\n'
    (folder / "small.toml").write_text(text)
    assert "promises nothing" in discreet("tradeoff promise small.toml").err
