"""`discreet plan`: the promise and its costs, before any training."""

from pathlib import Path

import pytest

from tests.cli.conftest import Discreet
from tests.small_experiment import SMALL


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(SMALL)
    return tmp_path


def test_the_plan_is_what_the_run_will_spend(discreet: Discreet, folder: Path):
    before = sorted(folder.rglob("*"))
    found = discreet("plan small.toml --json").json
    assert 1.99 < found["epsilon"] <= 2
    assert (found["rounds"], found["clients"], found["parameters"]) == (4, 3, 650)
    assert found["bytes"]["client_total"] == 4 * 5200
    assert sorted(folder.rglob("*")) == before
    ran = discreet(
        "run small.toml --json --out result --set algorithm.noise_multiplier=" + str(found["noise_multiplier"])
    )
    assert ran.json["epsilon"] == found["epsilon"]


def test_one_round_is_not_said_to_be_several(discreet: Discreet):
    said = " ".join(discreet("plan small.toml --set rounds=1").out.split())
    assert said.startswith("1 round, 3 clients")
    assert "affords 1 round." in said


def test_another_epsilon_costs_noise_or_rounds(discreet: Discreet):
    others = discreet("plan small.toml --json").json["other_epsilons"]
    assert [each["epsilon"] for each in others] == [0.5, 1, 2, 4, 8]
    noise = [each["noise_multiplier"] for each in others]
    rounds = [each["rounds_at_this_noise"] for each in others]
    assert noise == sorted(noise, reverse=True)
    assert rounds == sorted(rounds)
    assert rounds[2] == 4


def test_a_person_reads_the_promise_in_words(discreet: Discreet):
    ran = discreet("plan")
    assert (ran.code, ran.err) == (0, "")
    assert "100 rounds, 10 clients with 1,438 examples" in ran.out
    assert "Certified: ε = 2 at δ = 0.0001. Anyone who sees what the server sees" in ran.out
    said = " ".join(ran.out.split())
    assert "all clients together receive 2.6 MB and send 2.6 MB" in said
    assert "Noise to signal of a round's mean: 0.982 at best" in said
    assert "Within the promise, this noise affords 100 rounds." in said
    assert "Local work: 2 local steps per round recommended, now 1." in said
    assert "Warning" not in said
    assert "520 kB in the whole run; all clients together receive 2.6 MB" in said
    assert "secure aggregation" not in said
    assert max(map(len, ran.out.splitlines())) <= 80


def test_a_client_that_is_drawn_sends_at_most_so_much_and_less_as_a_rule(discreet: Discreet):
    recipe = "{recipe='dp_fedavg',learning_rate=1.0,clip_norm=0.5,batch_size=16,sampling_rate=0.5}"
    line = f"plan small.toml --set privacy.unit=client --set privacy.against=public --set algorithm={recipe}"
    found = discreet(f"{line} --json").json
    assert (found["bytes"]["client_total"], found["bytes"]["client_expected"]) == (4 * 5200, 2 * 5200)
    said = " ".join(discreet(line).out.split())
    assert (
        "at most 20.8 kB in the whole run, 10.4 kB expected; all clients together are expected to receive 15.6 kB"
        in said
    )


def test_what_secure_sums_send_beside_is_said_to_be_left_out(discreet: Discreet):
    recipe = "{recipe='ddp_fedavg',learning_rate=1.0,clip_norm=0.5,sampling_rate=0.3}"
    line = f"plan small.toml --set algorithm={recipe}"
    assert discreet(f"{line} --json").json["secure_sums"] is True
    assert "The bytes that secure aggregation sends besides the sums are not counted" in " ".join(
        discreet(line).out.split()
    )
    assert discreet("plan small.toml --json").json["secure_sums"] is False


def test_warnings_are_read_as_such(discreet: Discreet):
    said = " ".join(discreet("plan --set privacy.epsilon=11 --set privacy.delta=1e-3").out.split())
    assert said.count("Warning: ") == 2


def test_no_privacy_is_said(discreet: Discreet, folder: Path):
    text = SMALL.split("[privacy]")[0] + '[algorithm]\nrecipe = "fedavg"\nlearning_rate = 0.1\nbatch_size = 8\n'
    (folder / "small.toml").write_text(text)
    assert "No privacy" in discreet("plan small.toml").out
    assert discreet("plan small.toml --json").json["epsilon"] is None


def test_a_promise_that_is_not_kept_is_refused(discreet: Discreet):
    assert discreet("plan small.toml --set algorithm.noise_multiplier=0.5").code == 3
    assert discreet("plan small.toml --set privacy.unit=client").code == 2


def test_clients_who_overlap_hold_more_in_all_than_there_is(discreet: Discreet):
    task = "task={kind='digits',clients=4,partition={kind='overlapping',fraction=0.5}}"
    found = discreet("plan small.toml --json --set seed=0 --set", task).json
    assert (found["examples"], found["max_multiplicity"]) == (4 * 719, 4)
    assert 719 < found["distinct_examples"] < 1438
    text = " ".join(discreet("plan small.toml --set seed=0 --set", task).out.split())
    distinct = f"{found['distinct_examples']:,} distinct, each held by up to 4 clients"
    assert f"4 clients with 2,876 examples in total ({distinct}), about 4 clients in a round" in text
    disjoint = discreet("plan small.toml --json").json
    assert (disjoint["examples"], disjoint["distinct_examples"], disjoint["max_multiplicity"]) == (1438, 1438, 1)


def test_what_only_the_datas_owner_could_count_is_not_counted(discreet: Discreet, folder: Path):
    (folder / "visits.csv").write_text("ward,age,ill\n" + "a,50,no\nb,70,yes\n" * 20)
    ranges = "{age={min=0,max=100},ill={values=['no','yes']}}"
    task = f"task={{kind='csv',path='visits.csv',client='ward',label='ill',ranges={ranges},max_multiplicity=2}}"
    assert discreet("plan small.toml --json --set", task).json["distinct_examples"] is None
    text = " ".join(discreet("plan small.toml --set", task).out.split())
    assert "2 clients with 32 examples in total (each held by up to 2 clients)" in text
