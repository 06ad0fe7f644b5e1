"""`discreet tradeoff iterations`: the paper's setting without options, one object, a picture, and refusals."""

import re
from pathlib import Path

import pytest

from discreet.planning.curves.iterations_picture import draw_iterations
from discreet.planning.curves.iterations_tradeoff import IterationsTradeoff
from discreet.planning.theory.fu_client_noise import ClientNoise
from discreet.planning.theory.fu_convergence import SYNTHETIC_CONSTANTS, Setting
from tests.cli.conftest import Discreet

FEMNIST = "--noise gaussian --epsilon 10 --clients 3500 --cohort 350 --parameters 214590 --clip 3 --iterations 240"
SCALES = ("epsilon", "clip", "convexity", "smoothness", "gradient-bound")


def test_without_options_it_answers_for_the_papers_lending_club(discreet: Discreet):
    ran = discreet("tradeoff iterations")
    assert (ran.code, ran.err) == (0, "")
    assert re.search(r"C_M +4\.4 +17\.6", ran.out)  # 8·11·500·150²/(5000²·9), and four times that
    assert re.search(r"true ε of the noise +6 +3\n", ran.out)
    assert re.search(r"E\*, Theorem 5 +\* 24\.33", ran.out)  # 120^(2/3)
    assert re.search(r"as T grows +diverges +diverges", ran.out)
    said = " ".join(ran.out.split())
    assert "The bound diverges, because z = 2" in said
    assert "Not proven here: the clip of 150 may cut gradients" in said
    assert "from a pilot on 5,000 synthetic clients with 11 parameters" in said
    assert max(map(len, ran.out.splitlines())) <= 80


def test_the_object_holds_both_forms_with_their_flags(discreet: Discreet):
    found = discreet("tradeoff iterations --json").json
    assert found["setting"]["constants"] == vars(SYNTHETIC_CONSTANTS)
    assert (found["z"], found["c2"], found["rounds"], found["turns"]) == (2, None, 120, 12)
    printed, corrected = found["printed"], found["corrected"]
    assert (printed["noise_constant"], corrected["noise_constant"]) == pytest.approx((4.4, 17.6))
    assert (printed["true_epsilon"], corrected["true_epsilon"]) == pytest.approx((6, 3))
    for form in (printed, corrected):
        bound = form["bound"]
        assert bound["total"] == pytest.approx(bound["start"] + bound["descent"] + bound["noise"])
        assert (bound["valid"], bool(bound["reason"])) == (False, True)
        assert form["best_local_iterations"]["formula"]["valid"] is False
        assert form["best_local_iterations"]["whole"]["valid"] is True
        assert form["in_the_long_run"] | {"reason": ""} == {"verdict": "diverges", "limit": "inf", "reason": ""}
    swept = found["by_local_iterations"]
    assert [each["local_iterations"] for each in swept] == [1, 2, 3, 4, 6, 12]
    least = min(swept, key=lambda each: each["corrected"])
    assert least["local_iterations"] == corrected["best_local_iterations"]["whole"]["value"] == 2
    longest = min(found["by_iterations"], key=lambda each: each["corrected"])
    assert longest["iterations"] == corrected["best_iterations"]["whole"]["value"] == 10
    assert all(each["without_noise"] < each["printed"] < each["corrected"] for each in swept)


def test_gaussian_noise_levels_off_and_one_iteration_is_best(discreet: Discreet):
    found = discreet(f"tradeoff iterations {FEMNIST} --local-iterations 24 --json").json
    assert found["c2"] == pytest.approx(1.500, abs=5e-4)
    assert found["turns"] == 1  # the paper's E* = 24 is where a client uploads once
    corrected = found["corrected"]
    assert corrected["in_the_long_run"]["verdict"] == "levels off"
    assert corrected["best_local_iterations"]["whole"]["value"] == 1
    assert found["printed"]["true_epsilon"] > 20
    text = " ".join(discreet(f"tradeoff iterations {FEMNIST}").out.split())
    assert "levels off at" in text
    assert "the clip of 3 cuts gradients" in text


def test_constants_are_taken_as_given(discreet: Discreet):
    line = "tradeoff iterations --convexity 1 --smoothness 2 --gradient-bound 3 --heterogeneity 0 --start 0"
    found = discreet(line, "--cohort", 5000, "--epsilon", 1000, "--json").json
    assert found["constants_from"] == "given"
    assert (found["gamma"], found["omega0"]) == (16, 0)  # E = 1 and everyone joins: the term is zero
    assert found["corrected"]["bound"]["valid"] is True  # √11·3 is below 150
    some = discreet("tradeoff iterations --gradient-bound 3 --json").json
    assert some["constants_from"].startswith("gradient bound given, others from a pilot")
    assert "without noise" not in found["constants_from"] + some["constants_from"]
    assert "met without noise" in discreet("tradeoff iterations --start 3 --json").json["constants_from"]


def test_nothing_is_proven_where_the_noise_itself_makes_gradients_longer_than_g(discreet: Discreet):
    """Everyone joins and the clip of 180 is above √11·52.17 = 173, but Ξ = η̃·2·180, and m = 40 of 120 uploads."""
    line = "tradeoff iterations --clients 40 --cohort 40 --clip 180"
    found = discreet(line, "--json").json
    gradient = 2 / found["gamma"] * 360 * (2 * 11 * 40**2 / 40) ** 0.5  # μ·(2/μ)/γ·2ζ·√(2pm²/b)
    assert gradient == pytest.approx(295.6, abs=0.05)
    assert found["corrected"]["bound"]["valid"] is False
    text = " ".join(discreet(line).out.split())
    assert "Not proven here: a round's noise alone makes gradients of at least 295.6" in text
    assert "met without noise" in text


def test_a_pilot_finds_them_for_so_many_clients(discreet: Discreet):
    found = discreet("tradeoff iterations --pilot --clients 50 --cohort 10 --parameters 4 --json").json
    assert "on 50 synthetic clients of 80 examples with 4 parameters" in found["constants_from"]
    assert "no epsilon covers it" in found["constants_from"]
    assert found["setting"]["constants"] != vars(SYNTHETIC_CONSTANTS)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("least", [1e-6, 1e12])
def test_at_the_ends_of_what_it_takes_it_still_answers(noise: str, least: float, discreet: Discreet):
    most = 1e6 / least  # the other end
    line = f"tradeoff iterations --noise {noise} --smoothness 1e12 --convexity 1e-6 --epsilon {least} --clip {most}"
    found = discreet(line, "--gradient-bound", most, "--start", 1e12, "--heterogeneity", 1e12, "--json")
    assert found.code == 0
    assert 0 < found.json["corrected"]["bound"]["total"] < 1e200


def test_on_the_way_ends_at_the_last_iteration():
    """124 rounds in steps of two are 62 points and the end; 121 would stop one short."""
    noise = ClientNoise(kind="gaussian", epsilon=1000.0)
    setting = Setting(noise=noise, clients=10, cohort=10, parameters=3, clip_norm=1.0, constants=SYNTHETIC_CONSTANTS)
    for total in (1, 60, 121, 1000):
        way = draw_iterations(IterationsTradeoff(setting, total, 1, "")).panels[0]
        for each in way.curves:
            places = [point.x for point in each.points]
            assert (places[0], places[-1]) == (0, total)
            assert places == sorted(set(places))


def test_a_t_without_end_is_said_in_the_picture():
    noise = ClientNoise(kind="gaussian", epsilon=1000.0)
    setting = Setting(noise=noise, clients=10, cohort=10, parameters=3, clip_norm=1.0, constants=SYNTHETIC_CONSTANTS)
    drawn = draw_iterations(IterationsTradeoff(setting, 120, 1, ""))
    assert drawn.panels[2].title == "How long, E = 1; T* = ∞"
    assert not drawn.panels[2].marks
    assert drawn.notes[0] == "T* = ∞ at E = 1: the longer, the better: the bound falls towards its limit."


def test_an_e_or_t_at_an_edge_is_said_in_the_picture_as_on_the_page(discreet: Discreet):
    """With overwhelming noise every client uploads once, and the shortest run is best."""
    noise = ClientNoise(kind="laplace", epsilon=0.01)
    setting = Setting(noise=noise, clients=10, cohort=1, parameters=3, clip_norm=100.0, constants=SYNTHETIC_CONSTANTS)
    first, second, *_ = draw_iterations(IterationsTradeoff(setting, 120, 1, "")).notes
    assert first == "E* = 12 at T = 120: the largest at this T: every client uploads as rarely as possible."
    assert second == "T* = 10 at E = 1: the shortest in which every client joins."


def test_no_table_cuts_a_number(discreet: Discreet):
    page = discreet("tradeoff iterations --clients 10 --cohort 1 --iterations 10000000").out
    assert "…" not in page
    assert "1e7" in page
    assert max(map(len, page.splitlines())) <= 80


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_it_is_drawn_with_its_best_marked(noise: str, discreet: Discreet, tmp_path: Path):
    ran = discreet(f"tradeoff iterations --noise {noise} --picture", tmp_path / "iterations.svg")
    assert (ran.code, ran.err) == (0, "")
    drawn = (tmp_path / "iterations.svg").read_text()
    best = {"laplace": "E* = 2", "gaussian": "E* = 1"}[noise]
    for text in (
        "During training, T = 120 and E = 1",
        "How many local iterations",
        "How long",
        "E as a rule of T",
        best,
        "T* = 10",
    ):
        assert text in drawn


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("--iterations 125", "multiple of 10, and got 125. Use 120 or 130."),
        ("--local-iterations 5", "with 1, 2, 3, 4, 6 or 12 between two uploads, and got 5"),
        ("--cohort 5001", "at most all 5,000 clients, and got 5,001"),
        ("--smoothness 0.1", "at least convexity, and got 0.1 and 0.5441"),
        ("--pilot --parameters 5000", "draws more than 20,000,000 numbers"),
        *((f"--{name} {value}", "between 1e-6 and 1e12") for name in SCALES for value in ("0", "1e-300", "1e200")),
        ("--start 1e300", "at least 0 and at most 1e12"),
        ("--noise skellam", "skellam"),
        ("--heterogeneity -1", "at least 0"),
        ("--picture iterations.doc", "must end in"),
    ],
)
def test_what_it_cannot_mean_is_refused_in_one_sentence(wrong: str, said: str, discreet: Discreet):
    ran = discreet(f"tradeoff iterations {wrong}")
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert ran.err.count("\n") == 1
