"""The checker proves cards of our accountants, refutes faulty ones, and says when it can't tell."""

import ast
import sys
from fractions import Fraction
from pathlib import Path

import pytest

import discreet.verify
from discreet.verify.card_check import check_card
from discreet.verify.card_reader import Card, UnreadableCard, count_steps
from experiments.verify.random_cards import KINDS, certify, draw_card
from tests.tools.tool_loader import load_tool

FOLDER = Path(discreet.verify.__file__).parent
GAUSSIAN = {"kind": "gaussian", "noise_multiplier": 1.0}
# ε of one release with Laplace noise (multiplier, rate, δ) by the accountants as they were before their moments were
# bounded from above; each is low by 1e-8 to 1e-7 of itself.
FAULTY = [
    (10.0, 0.1, 1e-5, 0.010440298317719865),
    (5.0, 0.1, 1e-5, 0.021874839385422007),
    (2.0, 0.1, 1e-5, 0.06282375759223058),
    (1.0, 0.1, 1e-5, 0.1585186841184516),
    (0.5, 0.001, 1e-7, 0.00636726417165967),
]


@pytest.mark.parametrize("seed", range(4 * len(KINDS)))
def test_a_card_of_our_accountants_is_proved_and_not_at_a_lower_epsilon(seed):
    drawn = draw_card(seed)
    assert check_card(certify(drawn)).word == "proved"
    assert check_card(certify(drawn, 0.999)).word != "proved"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(44, 1000))
def test_no_card_of_our_accountants_is_refuted(seed):
    drawn = draw_card(seed)
    card = certify(drawn)
    assert check_card(card).word != "refuted"
    if card.epsilon > 0:
        assert check_card(certify(drawn, 0.999)).word != "proved"


@pytest.mark.parametrize(("noise", "rate", "delta", "epsilon"), FAULTY)
def test_the_fault_of_the_earlier_laplace_accountant_is_found(noise, rate, delta, epsilon):
    laplace = {"kind": "laplace", "noise_multiplier": noise}
    event = {"kind": "poisson_sampled", "sampling_rate": rate, "event": laplace}
    assert check_card(Card(epsilon, delta, "add_or_remove", event, {})).word == "refuted"
    assert check_card(Card(epsilon * (1 + 1e-6), delta, "add_or_remove", event, {})).word == "proved"


@pytest.mark.parametrize(
    "event",
    [
        {"kind": "skellam", "variance": 1e4, "l2_sensitivity": 20.0, "dimension": 100},
        {"kind": "discrete_gaussian", "variance": 100.0, "l2_sensitivity": 5.0},
        {
            "kind": "distributed_discrete_gaussian",
            "variance": 10.0,
            "shares": 9,
            "l2_sensitivity": 10.0,
            "dimension": 5,
        },
        {
            "kind": "distributed_discrete_gaussian",
            "variance": 1.0,
            "shares": 60,
            "l2_sensitivity": 1.0,
            "dimension": 5,
        },
    ],
)
@pytest.mark.parametrize("relation", ["zero_out", "replace"])
@pytest.mark.parametrize("rate", [1.0, 0.1])
def test_integer_noise_is_proved_and_never_refuted(event, relation, rate):
    from discreet.part import from_plain
    from discreet.privacy import accountant
    from discreet.privacy.events import Event

    whole = {"kind": "repeated", "count": 20, "event": event}
    if rate < 1:
        whole["event"] = {"kind": "poisson_sampled", "sampling_rate": rate, "event": event}
    epsilon = accountant.epsilon(from_plain(Event, whole), 1e-5, relation)
    assert check_card(Card(epsilon, 1e-5, relation, whole, {})).word == "proved"
    assert check_card(Card(epsilon * 0.999, 1e-5, relation, whole, {})).word == "unknown"
    assert check_card(Card(epsilon / 2, 1e-5, relation, whole, {})).word == "unknown"


@pytest.mark.parametrize("relation", ["zero_out", "replace"])
def test_so_little_integer_noise_that_its_published_bound_is_smaller_is_proved_without_sampling(relation):
    from discreet.part import from_plain
    from discreet.privacy import accountant
    from discreet.privacy.events import Event

    noise = {"kind": "discrete_gaussian", "variance": 0.5, "l2_sensitivity": 1.0}
    event = {"kind": "repeated", "count": 20, "event": noise}
    account = accountant.account(from_plain(Event, event), 1e-5, relation)
    assert account.certified_by == "rdp"
    assert check_card(Card(account.epsilon, 1e-5, relation, event, {})).word == "proved"


@pytest.mark.parametrize(
    "noise",
    [
        GAUSSIAN | {"noise_multiplier": 23.2},
        {"kind": "laplace", "noise_multiplier": 40.0},
        {"kind": "skellam", "variance": 1e5, "l2_sensitivity": 20.0, "dimension": 100},
        {"kind": "skellam", "variance": 1e5, "l2_sensitivity": 20.0, "dimension": 100_000},
        {"kind": "discrete_gaussian", "variance": 1e4, "l2_sensitivity": 5.0},
    ],
)
@pytest.mark.parametrize("relation", ["zero_out", "replace"])
@pytest.mark.parametrize("size", [1, 3, 5])
def test_a_group_whose_members_all_join_is_proved_as_noise_on_their_joint_move(noise, relation, size):
    from discreet.part import from_plain
    from discreet.privacy import accountant
    from discreet.privacy.events import Event

    step = {"kind": "poisson_sampled_group", "sampling_rate": 1.0, "group_size": size, "event": noise}
    event = {"kind": "repeated", "count": 20, "event": step}
    epsilon = accountant.epsilon(from_plain(Event, event), 1e-5, relation)
    assert check_card(Card(epsilon, 1e-5, relation, event, {})).word == "proved"
    assert check_card(Card(epsilon * 0.999, 1e-5, relation, event, {})).word != "proved"


@pytest.mark.parametrize("size", [2, 3, 7])
def test_a_group_whose_members_all_join_has_size_times_the_sensitivity(size):
    group = {"kind": "poisson_sampled_group", "sampling_rate": 1.0, "group_size": size}
    ((kind, multiplier),) = count_steps(group | {"event": GAUSSIAN})
    assert (kind, multiplier * size) == ("gaussian", pytest.approx(1, rel=1e-15))
    assert Fraction(multiplier) * size <= 1
    skellam = {"kind": "skellam", "variance": 100.0, "l2_sensitivity": 1.1, "dimension": 9}
    ((kind, variance, l2, dimension),) = count_steps(group | {"event": skellam})
    assert (kind, variance, l2, dimension) == ("skellam", 100.0, pytest.approx(1.1 * size, rel=1e-15), 9)
    assert Fraction(l2) >= Fraction(1.1) * size


@pytest.mark.parametrize(
    ("event", "relation"),
    [
        ({"kind": "best_of", "count": {}, "trials": [GAUSSIAN]}, "zero_out"),
        ({"kind": "a new kind"}, "zero_out"),
        ({"kind": "sampled_without_replacement", "cohort": 1, "population": 9, "event": GAUSSIAN}, "zero_out"),
        ({"kind": "poisson_sampled_group", "sampling_rate": 0.1, "group_size": 3, "event": GAUSSIAN}, "replace"),
        (
            {"kind": "poisson_sampled", "sampling_rate": 0.1, "event": {**GAUSSIAN, "noise_multiplier": 1e-3}},
            "zero_out",
        ),
    ],
)
def test_what_has_no_theorem_here_is_unknown_with_a_reason(event, relation):
    verdict = check_card(Card(1.0, 1e-5, relation, event, {}))
    assert verdict.word == "unknown"
    assert verdict.reason.endswith(".")


@pytest.mark.parametrize(
    "event",
    [
        [],
        {"kind": "repeated", "count": 0, "event": GAUSSIAN},
        {"kind": "repeated", "count": 2.5, "event": GAUSSIAN},
        {"kind": "poisson_sampled", "sampling_rate": 1.5, "event": GAUSSIAN},
        {"kind": "sampled_without_replacement", "cohort": 9, "population": 1, "event": GAUSSIAN},
        {"kind": "gaussian", "noise_multiplier": -1.0},
        {"kind": "gaussian", "noise_multiplier": "inf"},
        {"kind": "gaussian", "noise_multiplier": True},
    ],
)
def test_numbers_out_of_range_are_refused(event):
    with pytest.raises(UnreadableCard, match=r"must be .*, and this has "):
        count_steps(event)


def test_steps_are_counted_through_every_level():
    half = {"kind": "poisson_sampled", "sampling_rate": 0.5, "event": GAUSSIAN}
    whole = {"kind": "poisson_sampled", "sampling_rate": 1.0, "event": GAUSSIAN}
    inner = {"kind": "composed", "events": [GAUSSIAN, half, {"kind": "repeated", "count": 3, "event": half}, whole]}
    assert count_steps({"kind": "repeated", "count": 5, "event": inner}) == {
        ("gaussian", 1.0): 10,
        ("poisson", 0.5, ("gaussian", 1.0)): 20,
    }


def test_the_checker_has_at_most_a_thousand_lines_of_code():
    code_lines = load_tool("count_code").code_lines
    assert sum(len(code_lines(path.read_text(encoding="utf-8"))) for path in FOLDER.glob("*.py")) <= 1000


def test_the_checker_imports_nothing_else_of_this_package():
    allowed = {"discreet.verify", "numpy", "flint", *sys.stdlib_module_names}
    for path in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                assert name is not None
                assert name.startswith("discreet.verify") or name.partition(".")[0] in allowed, (path.name, name)
