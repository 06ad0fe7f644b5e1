"""`discreet algorithms`: the catalog, and one entry in full."""

import tomllib

import pytest

from discreet.algorithms.recipes.registry import RECIPES
from discreet.experiment.configuration.algorithm_table import build_algorithm
from tests.cli.conftest import Discreet


def test_the_list_names_every_recipe_with_paper_protection_and_knobs(discreet: Discreet):
    ran = discreet("algorithms")
    assert (ran.code, ran.err) == (0, "")
    assert max(map(len, ran.out.splitlines())) <= 80
    for name in RECIPES:
        assert f"{name} · " in ran.out
    pfl = ran.out.split("pfl · ")[1].split("\n\n")[0]
    assert pfl.startswith("PFL (Bhaskar et al. 2025)")
    assert "one example against the server" in pfl
    assert 'epoch = "pass"' in " ".join(pfl.split())
    assert "nobody" in ran.out.split("fedavg · ")[1].split("\n\n")[0]


def test_json_gives_the_names_and_the_same_facts(discreet: Discreet):
    found = discreet("algorithms --json").json
    assert found["names"] == list(RECIPES) == [each["name"] for each in found["algorithms"]]
    pfl = found["algorithms"][found["names"].index("pfl")]
    assert (pfl["paper"], pfl["protects"]) == ("PFL (Bhaskar et al. 2025)", [{"unit": "example", "against": "server"}])
    knobs = {each["name"]: each for each in pfl["parameters"]}
    assert knobs["learning_rate"] == {"name": "learning_rate", "type": "number", "required": True, "default": None}
    assert knobs["server"]["default"]["kind"] == "sgd"
    assert discreet("algorithms pfl --json").json == pfl


@pytest.mark.parametrize("name", RECIPES)
def test_one_in_full_ends_with_a_table_that_a_file_can_hold(name: str, discreet: Discreet):
    ran = discreet(f"algorithms {name}")
    assert ran.code == 0
    assert max(map(len, ran.out.splitlines())) <= 80
    table = tomllib.loads("[algorithm]" + ran.out.split("[algorithm]")[1].split("\n\nIf noise_multiplier")[0])
    assert build_algorithm(table["algorithm"]) == RECIPES[name](**RECIPES[name].example)
    for parameter in RECIPES[name].parameters:
        assert f"  {parameter} " in ran.out


def test_one_in_full_shows_the_formula(discreet: Discreet):
    assert "N(0, σ²C²)" in discreet("algorithms pfl").out


def test_a_name_that_there_is_not_is_one_sentence(discreet: Discreet):
    ran = discreet("algorithms plf")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("Error: There is no algorithm 'plf'. Choose one of: fedavg, ")
    assert ran.err.count("\n") == 1
