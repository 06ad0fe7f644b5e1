"""The files of paper 004 at a small scale: one setting for all, so that only the algorithm differs."""

from pathlib import Path

import pytest

from discreet.experiment import config
from discreet.experiment.promise import kept
from discreet.population import Population

FILES = sorted((Path(__file__).parents[2] / "experiments" / "fedsam").glob("*.toml"))
WRITERS = Population(examples=(100,) * 500)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_file_promises_the_same_and_takes_the_same_noise(path: Path):
    experiment = config.load(path).experiment
    algorithm = kept(experiment.algorithm, experiment.privacy, experiment.rounds, WRITERS)
    assert experiment.privacy is not None
    assert (experiment.privacy.unit, experiment.privacy.epsilon) == ("client", 8.0)
    assert algorithm.mechanism.noise_multiplier == pytest.approx(0.7688, abs=1e-3)


def test_all_of_paper_004s_algorithms_that_need_no_public_data_are_there():
    names = {"dp_fedavg", "dp_fedavg_blur", "dp_fedavg_blurs", "fed_smp_rand", "dp_fedsam", "dp_fedsam_top"}
    assert {path.stem for path in FILES} == names
