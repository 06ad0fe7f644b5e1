"""`discreet audit FILE --round`: one round of the file's algorithm, attacked on a toy task."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Discreet
from tests.small_experiment import SMALL

HALF = '''
from discreet.algorithms.mechanisms import Gaussian
from discreet.params import add, scale
from discreet.privacy.events import GaussianNoise
from discreet.algorithms.clipping import clip


class Half:
    """Adds half of the noise that it declares."""

    is_private = True
    unit = "client"
    norm_order = 2
    extra_values = 0

    def bound(self, delta, broadcast):
        return clip(delta, 1.0)

    def add_noise_share(self, encoded, broadcast, rows):
        return encoded

    def release_sum(self, total, state, broadcast, cohort, contributors, noise):
        drawn = {name: 0.5 * value[0] for name, value in noise.open().normal(total).items()}
        return add(total, drawn), state

    def sum_noise(self, grid=None, known_shares=0, contributors=None):
        return GaussianNoise(noise_multiplier=1.0)

    def upload_noise(self, grid=None):
        return None
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "small.toml").write_text(SMALL)
    return tmp_path / "small.toml"


def test_a_file_whose_round_holds_exits_with_0_and_prints_every_claim(file: Path, discreet: Discreet) -> None:
    ran = discreet(f"audit {file} --round --repetitions 4000 --seed 1 --json")
    answer = json.loads(ran.out)
    assert ran.code == 0
    assert not answer["alarm"]
    assert answer["results"]
    for result in answer["results"]:
        assert result["lower_bound"] <= result["claimed_epsilon"]
        assert result["repetitions"] == 4000


def test_a_part_of_a_users_own_with_half_the_noise_is_found_and_exits_with_4(file: Path, discreet: Discreet) -> None:
    (file.parent / "half.py").write_text(HALF)
    start = SMALL.index("[algorithm")
    trainer = 'trainer = { kind = "gradient_descent", learning_rate = 1.0, iterations = [1] }'
    file.write_text(f'{SMALL[:start]}[algorithm]\n{trainer}\nmechanism = {{ kind = "half.py:Half" }}\n')
    ran = discreet(f"audit {file} --round --repetitions 20000 --seed 1 --trust")
    text = " ".join(ran.out.split())
    assert ran.code == 4, text
    assert "client against public (model): claimed ε = " in text
    assert "VIOLATED" in text
    assert "Neighbours unit x = (" in text
    assert "A claim that is not contradicted is not proved" in text


def test_a_run_directory_and_a_person_without_a_promise_are_refused(file: Path, discreet: Discreet) -> None:
    assert "takes an experiment's file" in discreet(f"audit {file.parent} --round").err
    refused = discreet(f"audit {file} --round --unit person")
    assert refused.code == 2
    assert "promises nothing for persons" in refused.err


def test_a_view_without_a_claim_is_refused(file: Path, discreet: Discreet) -> None:
    refused = discreet(f"audit {file} --round --against public")
    assert refused.code == 2
    assert "needs a claim to test" in refused.err


def test_a_unit_without_a_claim_is_refused_in_words_of_the_command_line(file: Path, discreet: Discreet) -> None:
    file.write_text(file.read_text().replace('unit = "example"', 'unit = "client"'))
    start = file.read_text().index("[algorithm")
    recipe = '[algorithm]\nrecipe = "dp_fedavg"\nclip_norm = 1.0\nbatch_size = 2\nsteps = 1\nlearning_rate = 1.0\n'
    file.write_text(file.read_text()[:start] + recipe)
    refused = discreet(f"audit {file} --round --unit example")
    assert refused.code == 2
    assert "a round of this algorithm certifies nothing for one example. There is: client against" in refused.err
    assert "claims=" not in refused.err


def test_the_page_says_which_noise_is_tested_and_that_it_is_not_the_promise(file: Path, discreet: Discreet) -> None:
    line = f"audit {file} --round --repetitions 200 --seed 1"
    text = " ".join(discreet(line).out.split())
    assert "with a noise multiplier of 1. ε below is that of this round, not the promise of the experiment (ε" in text
    assert "the file leaves the noise open" in text
    assert "at δ = 1e-5 is not contradicted" in text
    assert discreet(f"{line} --json").json["assumed_noise_multiplier"] == 1
    stated = f"{line} --set algorithm.noise_multiplier=2"
    assert "with the noise of the file. ε below is that of one round" in " ".join(discreet(stated).out.split())
    assert discreet(f"{stated} --json").json["assumed_noise_multiplier"] is None


def test_too_few_repetitions_are_refused_in_a_sentence(file: Path, discreet: Discreet) -> None:
    refused = discreet(f"audit {file} --round --repetitions 1")
    assert refused.code == 2
    assert refused.err.startswith("Error: repetitions must be at least 100, and got 1.")
