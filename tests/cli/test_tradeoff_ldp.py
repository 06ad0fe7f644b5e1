"""`discreet tradeoff ldp`: every bound of Kim, Günlü & Schaefer 2021, its noise, its price and domain; groups."""

import math
from pathlib import Path

import pytest

from discreet.planning.curves import ldp_picture
from discreet.planning.theory import kim_exact_noise
from discreet.planning.theory.kim_client_groups import Group
from discreet.planning.theory.kim_noise_bounds import Promise
from discreet.planning.theory.kim_utility import Learning
from tests.cli.conftest import Discreet

LINE = "tradeoff ldp --epsilon 1 --delta 1e-4 --sampling-rate 1e-3 --rounds 70000 --dimension 10000 --clients 100"
ALONE = "tradeoff ldp --rounds 100"
QUICK = f"{ALONE} --sampling-rate 0.01"
PAPER = Promise(epsilon=1.0, delta=1e-4, sampling_rate=1e-3, rounds=70_000)


def test_the_papers_setting_has_the_known_numbers(discreet: Discreet):
    found = discreet(f"{LINE} --json").json
    bounds = found["bounds"]
    told = {name: (each["noise_variance"], each["utility"]) for name, each in bounds.items() if name != "exact"}
    assert told == {
        "theorem1": (pytest.approx(3.2495, abs=5e-5), pytest.approx(8.5903, abs=5e-5)),
        "moments": (pytest.approx(5.4432, abs=5e-5), pytest.approx(5.1346, abs=5e-5)),
        "ac1": (pytest.approx(254.18, abs=5e-3), pytest.approx(2800 / (1 + 10_000 * 2.5418), rel=1e-4)),
        "ac2": (pytest.approx(20.652, abs=5e-4), pytest.approx(1.3551, abs=5e-5)),
    }
    theorem = bounds["theorem1"]
    assert theorem["rate_bits"]["printed"] == pytest.approx(-16_996, abs=0.5)
    assert theorem["rate_bits"]["noise_alone"] == pytest.approx(28_972, abs=0.5)
    assert theorem["rate_bits"]["corrected"] > theorem["rate_bits"]["noise_alone"]
    assert theorem["true_epsilon"] == {
        "per_example": pytest.approx(0.466, abs=5e-4),
        "minibatch": pytest.approx(1.384, abs=5e-4),
    }
    assert theorem["claim_holds"] == {"per_example": True, "minibatch": False}
    assert all((each["valid"], each["reason"]) == (True, "") for name, each in bounds.items() if name != "exact")


def test_the_line_is_what_is_asked_without_options_too(discreet: Discreet):
    assert discreet(f"{LINE} --json").json == discreet("tradeoff ldp --json").json


def cells(page: str, name: str) -> list[str]:
    """Return the cells of the table row that begins with this name."""
    return next(line for line in page.splitlines() if line.startswith(f"  {name} ")).removeprefix(f"  {name} ").split()


def test_a_true_epsilon_above_the_promised_one_is_marked_as_the_object_says(discreet: Discreet):
    """Theorem 1's 3.2495 is 1.384 at 2C, where its conditions are met: meeting the conditions does not guarantee ε."""
    for options in ("", "--epsilon 3", "--epsilon 0.5"):
        bounds, page = discreet(f"{LINE} {options} --json").json["bounds"], discreet(f"{LINE} {options}").out
        rows = {"Theorem 1": "theorem1", "moments": "moments", "AC1": "ac1", "AC2": "ac2"}
        for name, key in rows.items():
            found = cells(page, name)
            kept = bounds[key]["claim_holds"]
            assert [not each.endswith("*") for each in found[1:3]] == [kept["per_example"], kept["minibatch"]]
            assert found[5] == ("met" if bounds[key]["valid"] else "broken")
        broken = any(not all(bounds[key]["claim_holds"].values()) for key in rows.values())
        assert ("* More than the promised ε: the promise is broken." in page) is broken
    assert cells(discreet(LINE).out, "Theorem 1")[2] == "1.385*"
    assert "*" not in discreet(f"{LINE} --delta 0.5 --epsilon 100").out


def test_of_noise_on_a_sum_no_utility_or_bits_are_shown(discreet: Discreet):
    """The sum over the batch is sent: with 600 examples at 0.01 there is a row for it."""
    page = discreet(QUICK).out
    assert cells(page, "exact, C")[2:] == ["–", "–", "–", "none", "–"]
    assert "–" not in cells(page, "exact, 2C")[2:]
    assert "–" not in cells(discreet(f"{QUICK} --examples 600").out, "exact, mean")[3:]
    several = discreet(f"{ALONE} --group 40:0.01 --group 60:0.02").out.split("All together:")[1]
    assert cells(several, "exact, C")[1:] == ["none", "–"]
    assert "–" not in cells(several, "exact, 2C")


def test_exact_noise_keeps_the_promise_at_both_sensitivities(discreet: Discreet):
    exact = discreet(f"{LINE} --json").json["bounds"]["exact"]
    assert set(exact) == {"per_example", "minibatch"}
    for clipping, each in exact.items():
        assert 0.999 < each["true_epsilon"][clipping] <= 1
        assert kim_exact_noise.certified_epsilon(clipping, each["noise_variance"], PAPER) <= 1
        assert (each["valid"], each["handed_out"]) == (True, each["noise_variance"])
    assert exact["minibatch"]["noise_variance"] == pytest.approx(4 * exact["per_example"]["noise_variance"])


def test_below_sigma_1_the_paper_hands_out_1_and_ours_does_not(discreet: Discreet):
    bounds = discreet("tradeoff ldp --epsilon 3 --json").json["bounds"]
    theorem = bounds["theorem1"]
    assert theorem["noise_variance"] == pytest.approx(0.4918, abs=5e-5)
    assert theorem["handed_out"] == 1
    assert theorem["utility"] == pytest.approx(27.7228, abs=5e-5)
    assert theorem["true_epsilon"]["minibatch"] == pytest.approx(9.294, abs=5e-3)
    assert bounds["exact"]["per_example"]["handed_out"] < 1


@pytest.mark.parametrize(
    ("options", "name", "why"),
    [
        ("--epsilon 1.5", "theorem1", "at σ² = 1.608 its condition on ε needs more than 1.718"),
        ("--epsilon 0.004", "theorem1", "not even positive"),
        ("--epsilon 0.2", "ac1", "q < 1/(16σ) means σ < 62.5, and σ is 76.81"),
        ("--sampling-rate 0.1", "moments", "σ must be at least 1"),
    ],
)
def test_a_bound_that_does_not_hold_says_why(options: str, name: str, why: str, discreet: Discreet):
    found = discreet(f"tradeoff ldp {options} --json").json["bounds"][name]
    assert not found["valid"]
    assert why in found["reason"]
    page = " ".join(discreet(f"tradeoff ldp {options}").out.split())
    assert why in page


def test_nothing_is_handed_out_or_priced_where_theorem_1_asks_for_less_than_nothing(discreet: Discreet):
    ran = discreet("tradeoff ldp --epsilon 0.001 --json").json["bounds"]
    found = ran["theorem1"]
    assert found["noise_variance"] == pytest.approx(-9.027e5, rel=1e-3)
    for name in ("handed_out", "rate_bits", "true_epsilon", "claim_holds", "utility", "utility_proved"):
        assert found[name] is None
    assert (found["valid"], found["reason"]) == (False, "its printed form is not even positive (σ² = -9.027e5)")
    assert ran["moments"]["handed_out"] > 1e6
    row = next(line for line in discreet("tradeoff ldp --epsilon 0.001").out.splitlines() if "  Theorem 1 " in line)
    assert row.split()[2:] == ["-9.0272e5", "–", "–", "–", "–", "broken", "–"]


def test_a_group_that_is_handed_nothing_leaves_all_without_a_utility(discreet: Discreet):
    ran = discreet("tradeoff ldp --group 5:0.001::1 --group 5:0.001::0.001 --json").json
    joint = ran["joint"]["theorem1"]
    assert (joint["noise_variance"], joint["utility"], joint["utility_proved"]) == (None, None, None)
    assert (joint["valid"], joint["reason"][:7]) == (False, "group 2")
    assert ran["groups"][0]["bounds"]["theorem1"]["handed_out"] == pytest.approx(3.2495, abs=5e-5)
    assert ran["joint"]["moments"]["utility"] > 0
    assert "utility" in discreet("tradeoff ldp --group 5:0.001::1 --group 5:0.001::0.001").out


def test_a_picture_that_cannot_be_written_is_refused_before_anything_is_computed(
    discreet: Discreet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(
        "discreet.planning.theory.kim_client_groups.evaluate_groups", lambda *_: pytest.fail("computed")
    )
    (tmp_path / "folder.png").mkdir()
    for name, why in (("missing/a.png", "there is no folder"), ("folder.png", "it is a folder")):
        ran = discreet("tradeoff ldp --picture", tmp_path / name)
        assert (ran.code, ran.err.count("\n")) == (2, 1)
        assert why in ran.err


def test_with_a_number_of_examples_noise_on_the_sum_is_divided_by_the_batch(discreet: Discreet):
    """600 examples at 0.01 are 6 a batch: 1/36 of the variance, and a second moment of 1 + 0.99/6."""
    exact = discreet(f"{QUICK} --examples 600 --json").json["bounds"]["exact"]
    mean, whole = exact["per_example_mean"], exact["per_example"]
    assert mean["noise_variance"] == pytest.approx(whole["noise_variance"] / 36)
    assert mean["utility"] > whole["utility"]
    assert mean["true_epsilon"] == whole["true_epsilon"]
    variance = mean["noise_variance"] + (1 + 0.99 / 6) / 10_000
    assert mean["rate_bits"]["corrected"] == pytest.approx(5_000 * math.log2(2 * math.pi * math.e * variance))


def test_a_step_of_a_hundredth_takes_6_64_bits_more_a_weight(discreet: Discreet):
    one, fine = (discreet(f"{QUICK} --step {step} --json").json["bounds"]["ac2"]["rate_bits"] for step in (1, 0.01))
    for name in ("printed", "corrected", "noise_alone"):
        assert fine[name] - one[name] == pytest.approx(10_000 * math.log2(100))


def test_the_utility_says_that_clipping_is_left_out(discreet: Discreet):
    clipped, whole = (discreet(f"{QUICK} --clip {clip} --json").json for clip in (1, 5))
    assert not clipped["utility_proof"]["valid"]
    assert "C = 1 is below G = 5" in clipped["utility_proof"]["reason"]
    assert clipped["bounds"]["ac2"]["utility_proved"] == 0
    assert whole["utility_proof"] == {"valid": True, "reason": ""}
    assert whole["bounds"]["ac2"]["utility_proved"] == pytest.approx(whole["bounds"]["ac2"]["utility"])


def test_groups_have_rows_of_their_own_and_learn_together(discreet: Discreet):
    found = discreet(f"{ALONE} --group 2:0.01:100:1 --group 1:0.02:300:4 --json").json
    first, second = found["groups"]
    assert (first["clients"], first["sampling_rate"], first["examples"], first["epsilon"]) == (2, 0.01, 100, 1)
    assert second["epsilon"] == 4
    assert "bounds" not in found
    for name in ("theorem1", "moments", "ac1", "ac2"):
        handed = [group["bounds"][name]["handed_out"] for group in (first, second)]
        variance = (2 * 1**2 * handed[0] + 6**2 * handed[1]) / (2 * 1 + 6) ** 2
        assert found["joint"][name]["noise_variance"] == pytest.approx(variance)
        scale = 100 / 25
        assert found["joint"][name]["utility"] == pytest.approx(scale * min(0.5, 1 / (1 + 10_000 * variance)))
    sums = [group["bounds"]["exact"]["per_example"]["noise_variance"] for group in (first, second)]
    assert found["joint"]["exact"]["per_example_mean"]["noise_variance"] == pytest.approx(
        (2 * sums[0] + sums[1]) / (2 * 1 + 6) ** 2
    )
    assert "utility" not in first["bounds"]["ac2"]


def test_a_group_that_breaks_a_condition_is_named_by_its_place(discreet: Discreet):
    joint = discreet(f"{ALONE} --group 2:0.01 --group 1:0.2 --json").json["joint"]
    assert "group 2: q < 1/(16σ) means σ < 0.3125" in joint["moments"]["reason"]
    assert not joint["moments"]["valid"]
    assert joint["exact"]["minibatch"]["valid"]


def test_groups_who_are_alike_are_one(discreet: Discreet):
    apart, whole = discreet(f"{ALONE} --group 40:0.01 --group 60:0.01 --json").json, discreet(f"{QUICK} --json").json
    for name in ("theorem1", "ac1"):
        assert apart["joint"][name]["utility"] == pytest.approx(whole["bounds"][name]["utility"])
    one = discreet(f"{ALONE} --group 100:0.01 --json").json
    assert one == whole


def test_an_empty_field_of_a_group_is_left_out(discreet: Discreet):
    found = discreet(f"{ALONE} --group 7:0.02::3 --json").json
    assert (found["clients"], found["examples"], found["epsilon"]) == (7, None, 3)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("--group 5", "must be CLIENTS:RATE[:EXAMPLES[:EPSILON]], and got '5'"),
        ("--group 5::7", "must be CLIENTS:RATE[:EXAMPLES[:EPSILON]], and got '5::7'"),
        ("--group 5:2", "above 0 and at most 1"),
        ("--group 5:0.1 --clients 7", "A --group names its clients and their rate. Leave --clients"),
        ("--group 5:0.1 --sampling-rate 0.1", "A --group names its clients and their rate. Leave --clients"),
        ("--group 5:0.1:7 --group 5:0.1", "Some groups say how many examples"),
        ("--group 5:0.1 --group 5:0.1 --picture there.png", "A picture shows clients with the same numbers only."),
        ("--picture there.txt", "must end in"),
        ("--picture no/such/there.png", "there.png can't be written: there is no folder no/such."),
        ("--epsilon 0", "between 1e-6 and 1e12"),
        ("--sampling-rate 1e-300", "A sampling rate must be at least 1e-12, and got 1e-300."),
        ("--convexity 2", "No loss is 2-strongly convex"),
    ],
)
def test_wrong_input_is_refused_in_one_sentence(options: str, why: str, discreet: Discreet):
    ran = discreet(f"{ALONE} {options}")
    assert (ran.code, ran.out) == (2, "")
    assert why in ran.err
    assert ran.err.count("\n") == 1


def test_the_page_fits_80_columns_whatever_the_numbers(discreet: Discreet):
    for options in ("--examples 600", "--epsilon 1e-5", "--group 5:0.1 --group 6:0.2", "--sampling-rate 1"):
        page = discreet(f"{ALONE} {options}").out
        assert max(map(len, page.splitlines())) <= 80
        assert "…" not in page
        assert "nan" not in page


@pytest.mark.parametrize(
    "options", ["--epsilon 1e-6", "--epsilon 0.001", "--dimension 1e12", "--epsilon 1e-6 --dimension 1e12 --step 1e-6"]
)
def test_no_number_of_the_table_is_broken(options: str, discreet: Discreet):
    lines = discreet(f"tradeoff ldp {options}").out.splitlines()
    names = ("Theorem 1 ", "moments ", "AC1 ", "AC2 ", "exact, C ", "exact, 2C ")
    start = next(place for place, line in enumerate(lines) if line.startswith("  Theorem 1 "))
    rows = lines[start : start + 6]
    assert [row.strip().startswith(name) for row, name in zip(rows, names, strict=True)] == [True] * 6
    for row, name in zip(rows, names, strict=True):
        assert len(row.strip().removeprefix(name).split()) == 7
    assert max(map(len, lines)) <= 80
    assert "…" not in "".join(lines)


def test_without_sampling_the_papers_bounds_are_infinite_and_ours_is_not(discreet: Discreet):
    bounds = discreet(f"{QUICK} --sampling-rate 1 --json").json["bounds"]
    assert bounds["moments"]["noise_variance"] == "inf"
    assert "divides by 1 − q, which is 0 at q = 1" in bounds["moments"]["reason"]
    assert bounds["exact"]["per_example"]["noise_variance"] < 1e4


def test_the_picture_has_three_panels_over_the_same_epsilon_with_every_way_to_count():
    promise = Promise(epsilon=1.0, delta=1e-4, sampling_rate=1e-3, rounds=7000)
    picture = ldp_picture.draw_ldp(Group(clients=10, promise=promise), Learning(rounds=7000, dimension=100), 1.0)
    noise, utility, bits = picture.panels
    names = {"exact, C", "Theorem 1", "moments", "AC1", "AC2", "exact, 2C"}
    sent = names - {"exact, C"}  # its noise is on a sum that is not sent as it is
    assert {each.name for each in noise.curves} == names
    assert {each.name for each in utility.curves} == sent
    assert {each.name for each in bits.curves} == {*sent, "Theorem 1, printed"}
    assert any("no utility or bits are shown for it" in note for note in picture.notes)
    across = {tuple(point.x for point in each.points) for panel in picture.panels for each in panel.curves}
    assert len(across) == 1
    assert noise.limits == utility.limits == bits.limits
    begun = {f"{name} begins" for name in ("Theorem 1", "moments", "AC1", "AC2")}
    assert {limit.name for limit in noise.limits} == begun


def test_the_papers_own_limit_is_in_its_default_picture():
    swept = ldp_picture.sweep_epsilon(Group(clients=1, promise=PAPER))
    assert {limit.name: limit.x for limit in swept.limits()}["Theorem 1 begins"] == pytest.approx(0.009996, abs=5e-7)


def test_where_theorem_1_asks_for_less_than_nothing_there_is_no_curve():
    """L = ln 1e4 = 9.21: the bracket is 0 at about ε = 1/200, where 2·(L − ln(2L) − 1 + ln ε) = −ε."""
    group = Group(clients=100, promise=PAPER.with_epsilon(0.05))
    for panel in ldp_picture.draw_ldp(group, Learning(rounds=70_000, dimension=10_000), 1.0).panels:
        for each in (curve for curve in panel.curves if curve.name.startswith("Theorem 1")):
            assert all(math.isnan(point.y) for point in each.points if point.x < 0.00498)
        dashed = next(curve for curve in panel.curves if curve.name == "Theorem 1" and curve.dashed)
        assert any(0.00499 < point.x < 0.0082 and point.y > 0 for point in dashed.points)
        exact = next(curve for curve in panel.curves if curve.name == "exact, 2C")
        assert all(math.isfinite(point.y) for point in exact.points)


def test_a_curve_is_dashed_where_its_conditions_fail_and_level_where_sigma_is_1():
    swept = ldp_picture.sweep_epsilon(
        Group(clients=1, promise=Promise(epsilon=1.0, delta=1e-4, sampling_rate=1e-3, rounds=7000))
    )
    theorem = next(way for way in swept.bounds if way.name == "Theorem 1")
    dashed, solid = (each for each in swept.curves(lambda variance: variance) if each.name == "Theorem 1")
    assert (dashed.dashed, solid.dashed) == (True, False)
    for holds, point, value in zip(theorem.holds, solid.points, theorem.variances, strict=True):
        assert point.y == value if holds else math.isnan(point.y)
    shown = [
        not math.isnan(one.y) or not math.isnan(other.y) for one, other in zip(dashed.points, solid.points, strict=True)
    ]
    assert all(shown)
    level = swept.domains["theorem1"].saturates
    assert level is not None
    assert {value for at, value in zip(swept.epsilons, theorem.variances, strict=True) if at > level} == {1.0}


@pytest.mark.parametrize("delta", ["0.9999999999", "0.9999999999999999", "1e-300"])
def test_a_delta_next_to_1_or_to_0_is_answered(delta: str, discreet: Discreet):
    ran = discreet(f"{QUICK} --delta {delta} --json")
    assert (ran.code, ran.err) == (0, "")


def test_one_client_and_one_round_are_not_said_to_be_several(discreet: Discreet):
    page = discreet("tradeoff ldp --rounds 1 --dimension 1 --group 1:0.01:1").out
    assert "1 round, 1 weight, " in page
    assert "1 client with 1 example each" in page


def test_the_picture_is_drawn(discreet: Discreet, tmp_path: Path):
    ran = discreet(f"{QUICK} --json --picture", tmp_path / "ldp.svg")
    assert ran.code == 0
    assert (tmp_path / "ldp.svg").stat().st_size > 10_000
