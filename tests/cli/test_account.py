"""`discreet account` prices a mechanism, finds the noise for a target, and refuses contradictory options."""

import json
import math
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Discreet

EXAMPLE = "account gaussian --noise-multiplier 1 --sampling-rate 0.1 --steps 1000 --delta 1e-5"
SKELLAM = "account skellam --l2-sensitivity 10 --dimension 100"


def test_the_example_of_the_manual(discreet: Discreet):
    ran = discreet(EXAMPLE, "--json")
    assert (ran.code, ran.err) == (0, "")
    answer = ran.json
    assert answer["epsilon"] == pytest.approx(25.2046, abs=1e-3)
    assert answer["delta"] == 1e-5
    assert answer["epsilon"] == min(answer["accountants"].values())
    assert {"pld", "rdp"} <= answer["accountants"].keys()
    assert answer["certified_by"] == "pld"
    assert list(answer["tpr"]) == ["0.001", "0.01", "0.1"]
    assert all(float(fpr) < tpr <= 1 for fpr, tpr in answer["tpr"].items())
    assert answer["event"]["count"] == answer["steps"] == 1000


def test_the_same_as_text_puts_the_tightest_first_and_says_it_plainly(discreet: Discreet):
    out = discreet(EXAMPLE).out
    assert out.startswith("1,000 × Gaussian noise of multiplier 1, Poisson sampling at rate 0.1\n")
    assert re.search(r"pld +25\.21 +reported", out)
    assert out.index("pld ") < out.index("rdp ")
    assert "Anyone who sees the results can tell whether any one example was used no better" in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    "line",
    [
        "account gaussian --noise-multiplier 1",
        "account laplace --noise-multiplier 2 --steps 3",
        f"{SKELLAM} --variance 1000 --sampling-rate 0.1 --steps 10",
        "account discrete-gaussian --variance 1000 --l2-sensitivity 10",
        "account gaussian --noise-multiplier 1 --sampling-rate 0.1 --relation replace",
        "account gaussian --noise-multiplier 1 --sampling-rate 0.1 --relation zero-out",
        "account gaussian --noise-multiplier 2 --sampling-rate 0.1 --sampling without-replacement --steps 10",
        "account gaussian --noise-multiplier 2 --cohort 10 --population 1000 --steps 10",
        "account zcdp --rho 0.1 --sampling-rate 0.1",
        "account randomised-response --categories 5 --random-share 0.5 --steps 3",
        "account gaussian --noise-multiplier 1 --sampling allocation --bins 20 --steps 3",
        "account laplace --noise-multiplier 2 --sampling-rate 0.1 --sampling truncated-poisson --max-batch-size 20 "
        "--population 100",
    ],
)
def test_every_mechanism_answers_with_one_object_and_as_text(line: str, discreet: Discreet):
    answer = discreet(line, "--json").json
    assert 0 < answer["epsilon"] < float("inf")
    assert answer["epsilon"] == answer["accountants"][answer["certified_by"]]
    assert discreet(line).code == 0


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_calibrated_noise_meets_its_epsilon_and_no_less_does(kind: str, discreet: Discreet):
    found = discreet(f"account {kind} --epsilon 2 --sampling-rate 0.01 --steps 100 --json").json
    assert found["found"] == "noise_multiplier"
    assert found["epsilon"] <= 2
    less = discreet(
        f"account {kind} --sampling-rate 0.01 --steps 100 --json --noise-multiplier", 0.99 * found["noise_multiplier"]
    ).json
    assert less["epsilon"] > 2


def test_the_noise_of_the_literature(discreet: Discreet):
    found = discreet("account gaussian --epsilon 2 --sampling-rate 0.01 --steps 1000 --json").json
    assert found["noise_multiplier"] == pytest.approx(0.9593, abs=2e-4)


def test_calibrated_variance(discreet: Discreet):
    found = discreet(f"{SKELLAM} --epsilon 2 --json").json
    assert found["found"] == "variance"
    assert found["variance"] > 0
    assert found["epsilon"] <= 2


def test_affordable_steps(discreet: Discreet):
    line = "account gaussian --noise-multiplier 1 --sampling-rate 0.01 --json"
    found = discreet(f"{line} --epsilon 2").json
    assert found["found"] == "steps"
    assert found["epsilon"] <= 2 < discreet(f"{line} --steps", found["steps"] + 1).json["epsilon"]


def test_no_affordable_step_is_an_answer(discreet: Discreet):
    line = "account gaussian --noise-multiplier 0.3 --epsilon 1"
    found = discreet(line, "--json").json
    assert (found["steps"], found["epsilon"]) == (0, 0)
    assert "not even one" in discreet(line).out


@pytest.mark.parametrize("sampling", ["poisson", "without-replacement"])
def test_affordable_sampling_rate(sampling: str, discreet: Discreet):
    line = f"account gaussian --noise-multiplier 2 --steps 100 --sampling {sampling} --json"
    found = discreet(f"{line} --epsilon 2").json
    assert found["found"] == "sampling_rate"
    assert found["epsilon"] <= 2 < discreet(f"{line} --sampling-rate", 1.05 * found["sampling_rate"]).json["epsilon"]


def test_noise_against_an_attack(discreet: Discreet):
    found = discreet("account gaussian --attack-tpr 0.05 --fpr 0.02 --steps 10 --json").json
    assert 0.0499 < found["tpr"]["0.02"] <= 0.05
    assert found["target"] == {"true_positive_rate": 0.05, "false_positive_rate": 0.02}


def test_cohorts_of_fixed_size_are_for_replacing(discreet: Discreet):
    line = "account gaussian --noise-multiplier 2 --sampling without-replacement"
    answer = discreet(f"{line} --sampling-rate 0.1 --json").json
    assert (answer["relation"], answer["cohort"], answer["population"]) == ("replace", 1, 10)
    drawn = discreet(f"{line} --sampling-rate 0.1 --population 128 --json").json
    assert (drawn["cohort"], drawn["sampling_rate"]) == (13, 13 / 128)
    refused = discreet(f"{line} --sampling-rate 0.1 --relation add-or-remove")
    assert refused.code == 2
    assert "--relation replace" in refused.err


def test_the_examples_of_one_person_are_priced_together(discreet: Discreet):
    line = "account gaussian --noise-multiplier 1 --sampling-rate 0.01 --steps 1000 --delta 1e-5 --group-size 5"
    answer = discreet(f"{line} --json").json
    assert answer["epsilon"] == pytest.approx(11.64, abs=0.005)
    assert answer["group_size"] == 5
    assert answer["certified_by"] == "pld"
    text = discreet(line).out
    assert "for groups of up to 5" in " ".join(text.split())
    assert "whether any one person was used" in " ".join(text.split())


def test_noise_is_found_for_a_group(discreet: Discreet):
    line = "account gaussian --epsilon 2 --sampling-rate 0.01 --steps 1000 --group-size 5 --json"
    answer = discreet(line).json
    assert answer["found"] == "noise_multiplier"
    assert 1.99 < answer["epsilon"] <= 2


def test_the_help_names_the_relation_that_is_used_and_that_a_file_of_curves_is_replaced(discreet: Discreet):
    shown = " ".join(discreet("account randomised-response --help").out.split())
    assert "default: replace for answers and sampling without replacement" in shown
    assert "An existing file is replaced." in shown
    answer = discreet("account randomised-response --categories 2 --random-share 0.5 --json").json
    assert answer["relation"] == "replace"


def test_the_second_engine_confirms(discreet: Discreet):
    answer = discreet("account gaussian --noise-multiplier 1 --sampling-rate 0.1 --check --json").json
    assert answer["second_engine"]["epsilon"] == pytest.approx(answer["epsilon"], rel=1e-2)


def test_the_card_comes_with_it(discreet: Discreet):
    line = "account gaussian --noise-multiplier 1 --sampling-rate 0.1 --card --unit person:patient:5 --view public"
    card = discreet(line, "--json").json["guarantee"]
    assert card["unit"] == {"kind": "person", "column": "patient", "at_most": 5}
    assert card["view"] == "public"
    assert card["event"]["event"]["group_size"] == 5
    assert "Guarantee card" in discreet(line).out


def test_a_person_in_several_clients_has_all_their_rows_in_one_sum(discreet: Discreet):
    line = "account gaussian --noise-multiplier 1 --sampling-rate 0.01 --steps 1000 --json"
    assert (
        discreet(f"{line} --unit person:patient:5:2").json["epsilon"]
        == discreet(f"{line} --group-size 10").json["epsilon"]
    )


@pytest.mark.parametrize(
    "wrong",
    [
        "--noise-multiplier -1",
        "--noise-multiplier 0",
        "--noise-multiplier nan",
        "--noise-multiplier inf",
        "--noise-multiplier abc",
        "--noise-multiplier 1 --sampling-rate 1.01",
        "--noise-multiplier 1 --sampling-rate 0",
        "--noise-multiplier 1 --steps 0",
        "--noise-multiplier 1 --steps 2.5",
        "--noise-multiplier 1 --delta 0",
        "--noise-multiplier 1 --delta 1",
        "--noise-multiplier 1 --cohort 3",
        "--noise-multiplier 1 --cohort 3 --population 2",
        "--noise-multiplier 1 --cohort 3 --population 9 --sampling-rate 0.1",
        "--noise-multiplier 1 --population 9",
        "--noise-multiplier 1 --fpr 0.1",
        "--noise-multiplier 1 --relation sideways",
        "--noise-multiplier 1 --unit people",
        "--noise-multiplier 1 --unit person:patient:5 --group-size 4",
        "--noise-multiplier 1 --group-size 0",
        "--noise-multiplier 1 --sampling-rate 0.1 --group-size 2 --relation replace",
        "--noise-multiplier 1 --sampling without-replacement --sampling-rate 0.1 --group-size 2",
        "--noise-multiplier 1 --steps 1 --sampling-rate 1 --epsilon 1",
        "--epsilon 1 --attack-tpr 0.1",
        "--epsilon 0",
        "--noise-multiplier 1 --sampling-rate 0.1 --card --unit client",
        "",
    ],
)
def test_what_it_cannot_mean_is_refused_in_one_sentence(wrong: str, discreet: Discreet):
    ran = discreet(f"account gaussian {wrong}")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 1
    assert json.loads(discreet(f"account gaussian {wrong} --json").err)["error"]["exit_code"] == 2


def test_a_lattice_mechanism_needs_its_sensitivity(discreet: Discreet):
    ran = discreet("account skellam --variance 10")
    assert ran.code == 2
    assert ran.err == "Error: Missing option '--l2-sensitivity'. See: discreet account skellam --help\n"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("gaussian --epsilon 1 --noise-multiplier 1 --sampling-rate 1e-6", 0),
        ("gaussian --sampling-rate 1e-5 --steps 1e10 --noise-multiplier 1", 0),
        ("gaussian --noise-multiplier 0.01 --sampling-rate 0.5 --relation replace", 0),
        ("gaussian --noise-multiplier 1 --delta 5e-324", 2),
        ("gaussian --noise-multiplier 1e-300", 2),
        ("gaussian --noise-multiplier 1 --sampling without-replacement --sampling-rate 5e-324", 2),
        ("skellam --variance 1e-300 --l2-sensitivity 1 --dimension 1", 2),
        ("skellam --variance 1e308 --l2-sensitivity 1e200 --dimension 1e9", 2),
        ("skellam --variance 100 --l2-sensitivity 1e8 --dimension 1", 0),
        ("skellam --epsilon 1e6 --l2-sensitivity 0.001 --dimension 5", 2),
        ("discrete-gaussian --variance 5e-324 --l2-sensitivity 1e300", 2),
        ("laplace --noise-multiplier 0.2 --steps 1e6 --sampling-rate 1e-6 --delta 1e-12", 0),
    ],
)
def test_extremes_are_answered_or_refused_in_a_sentence(line: str, code: int, discreet: Discreet):
    ran = discreet(f"account {line} --json")
    assert ran.code == code
    assert "Unexpected" not in ran.err
    assert code != 0 or 0 <= float(ran.json["epsilon"]) < math.inf


AVERAGING = "account averaging --local-epsilon 5 --parties 10 --sampling-rate 0.1 --delta 1e-5"


def test_the_mean_of_models_trained_apart_as_heikkila_claims_and_as_it_is_certified(discreet: Discreet):
    found = discreet(f"{AVERAGING} --steps 10 --json").json
    assert round(found["sigma_total"], 2) == 2.85
    assert round(found["claimed_epsilon"], 2) == 0.72
    assert (round(found["sigma_local"], 4), found["claim_holds"]) == (0.902, False)
    assert found["epsilon"] == pytest.approx(3.5346, abs=1e-3)  # of a single model, by its privacy-loss distribution
    assert (found["unit"], found["view"]) == ("example", "public")
    out = discreet(f"{AVERAGING} --steps 10").out
    assert re.search(r"the mean +2\.853 +0\.716 +a claim, not certified\n", out)
    assert re.search(r"certified +0\.902 +3\.535 +by pld\n", out)
    assert "its own noise alone" in out
    assert "against those who see the mean and none of the models\n" in out


def test_the_mean_of_models_of_one_step_is_certified_at_the_noise_of_all(discreet: Discreet):
    found = discreet(f"{AVERAGING} --json").json
    assert (round(found["sigma_total"], 2), round(found["claimed_epsilon"], 2)) == (2.18, 0.64)
    assert found["claim_holds"] is True
    same = discreet("account gaussian --sampling-rate 0.1 --json --noise-multiplier", found["sigma_total"]).json
    assert found["epsilon"] == same["epsilon"]
    assert "a claim" not in discreet(AVERAGING).out


@pytest.mark.parametrize(
    "wrong",
    ["--parties 2", "--local-epsilon 5", "--local-epsilon 5 --parties 0", "--local-epsilon 0.04 --parties 2"],
)
def test_what_averaging_cannot_mean_is_refused_in_one_sentence(wrong: str, discreet: Discreet):
    ran = discreet(f"account averaging {wrong}")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 1


SAMPLED = "account gaussian --noise-multiplier 1 --sampling-rate 0.01 --steps 1000"


def test_the_best_of_a_random_number_of_trials_costs_more_than_one_and_less_than_all(discreet):
    one, ten = discreet(f"{SAMPLED} --json").json, discreet(f"{SAMPLED}0 --json").json
    best = discreet(f"{SAMPLED} --expected-trials 10 --check --json").json
    assert one["epsilon"] < best["epsilon"] < ten["epsilon"]
    assert best["event"]["kind"] == "best_of"
    assert best["expected_trials"] == 10
    assert best["second_engine"]["epsilon"] == pytest.approx(best["epsilon"], rel=0.02)


def test_noise_can_be_found_for_the_best_of_several_trials(discreet):
    found = discreet(
        "account gaussian --epsilon 2 --sampling-rate 0.01 --steps 100 --expected-trials 5 --trials logarithmic --json"
    ).json
    assert found["found"] == "noise_multiplier"
    assert 1.9 < found["epsilon"] <= 2


def test_the_card_of_a_selection_holds_against_the_public_only(discreet):
    refused = discreet(f"{SAMPLED} --expected-trials 10 --card")
    assert refused.code == 2
    assert "every trial" in refused.err
    card = discreet(f"{SAMPLED} --expected-trials 10 --card --view public --relation zero-out")
    assert "best of a secret number of trials" in card.out
    assert discreet(f"{SAMPLED} --expected-trials 1").code == 2


def test_the_largest_rho_for_an_epsilon_meets_it_and_no_larger_does(discreet: Discreet):
    found = discreet("account zcdp --epsilon 2 --steps 3 --json").json
    assert found["found"] == "rho"
    assert 1.999 < found["epsilon"] <= 2
    assert discreet(f"account zcdp --rho {found['rho'] * 1.001} --steps 3 --json").json["epsilon"] > 2
    assert "the largest with ε ≤ 2" in discreet("account zcdp --epsilon 2").out


def test_the_least_random_share_for_an_epsilon_is_that_of_its_odds(discreet: Discreet):
    """One answer is pure: the truth is e^ε times as likely as any other answer, but for the δ."""
    found = discreet("account randomised-response --categories 5 --epsilon 1 --delta 1e-12 --json").json
    odds = 1 + 5 * (1 - found["random_share"]) / found["random_share"]
    assert odds == pytest.approx(math.e, rel=1e-4)
    assert found["relation"] == "replace"


def test_a_truncated_sample_states_its_sizes_and_costs_more_than_a_free_one(discreet: Discreet):
    line = "account gaussian --noise-multiplier 1 --sampling-rate 0.05 --relation zero-out --json --steps 10"
    cut = discreet(f"{line} --sampling truncated-poisson --max-batch-size 60 --population 1000").json
    assert (cut["sampling"], cut["max_batch_size"], cut["population"]) == ("truncated-poisson", 60, 1000)
    assert cut["event"]["event"]["kind"] == "truncated_poisson_sampled"
    assert cut["epsilon"] > discreet(line).json["epsilon"]


def test_one_pass_of_a_random_allocation_hides_more_than_no_sampling(discreet: Discreet):
    line = "account gaussian --noise-multiplier 1 --json"
    spread = discreet(f"{line} --sampling allocation --bins 10").json
    assert (spread["sampling"], spread["bins"], spread["sampling_rate"]) == ("allocation", 10, 0.1)
    assert spread["epsilon"] < discreet(line).json["epsilon"]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ("gaussian --noise-multiplier 1 --sampling allocation", "needs --bins"),
        ("gaussian --noise-multiplier 1 --sampling allocation --bins 3 --sampling-rate 0.1", "takes the place of"),
        ("gaussian --noise-multiplier 1 --bins 3", "--bins needs --sampling allocation"),
        ("laplace --noise-multiplier 1 --sampling allocation --bins 3", "needs Gaussian noise"),
        ("gaussian --noise-multiplier 1 --sampling allocation --bins 3 --relation replace", "not for replacing"),
        ("gaussian --noise-multiplier 1 --sampling truncated-poisson --sampling-rate 0.1", "needs --max-batch-size"),
        ("gaussian --noise-multiplier 1 --max-batch-size 4", "--max-batch-size needs --sampling truncated-poisson"),
        ("randomised-response --categories 3 --random-share 0.5 --sampling-rate 0.5", "every unit answers"),
        ("randomised-response --categories 3 --random-share 0.5 --relation zero-out", "replace only"),
        ("randomised-response --categories 1 --random-share 0.5", "at least 2"),
    ],
)
def test_options_of_another_way_of_sampling_are_refused(options: str, named: str, discreet: Discreet):
    ran = discreet(f"account {options}")
    assert ran.code == 2
    assert named in " ".join(ran.err.split())


def test_curves_are_written_beside_the_answer_and_named_in_it(discreet: Discreet, tmp_path: Path):
    file = tmp_path / "curves.json"
    line = f"account gaussian --noise-multiplier 2 --steps 3 --delta 1e-6 --curve {file}"
    answer = discreet(f"{line} --json").json
    points = {point["delta"]: point["epsilon"] for point in json.loads(file.read_text())["epsilon_curve"]}
    assert answer["curve"] == str(file)
    assert points[1e-6] == pytest.approx(answer["epsilon"], rel=1e-9)
    assert f"The curves are in {file}." in " ".join(discreet(line).out.split())


def test_a_file_of_curves_that_can_not_be_written_is_refused_first(discreet: Discreet):
    ran = discreet("account gaussian --noise-multiplier 2 --curve curves.txt")
    assert (ran.code, ran.out) == (2, "")
    assert "must end in .csv" in ran.err
