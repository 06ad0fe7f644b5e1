"""Real processes that train on a GPU: workers of Ray that share it, and a client's node beside others on the CPU."""

from pathlib import Path
from typing import Any

import pytest

from discreet import api
from discreet.experiment.configuration import experiment_file
from discreet.experiment.loop import training_loop
from discreet.experiment.run_directory.run_record import RunRecord
from discreet.params import Params
from discreet.trust import Trust
from tests.deploy.example_sites import PLAIN, with_long_waits
from tests.deploy.real_deployment import CLIENTS, run_server

pytestmark = [pytest.mark.deploy, pytest.mark.cuda]
ROUNDS = 3


def train(folder: Path, source: Any) -> Params:
    training_loop.start(api.prepare_job(source), folder, None, folder.parent / "keys", lambda line: None)
    return RunRecord.open(folder).load_model()


def difference(found: Params, wanted: Params) -> float:
    return max(float((found[name].double() - wanted[name].double()).abs().max()) for name in wanted)


def test_two_workers_of_ray_that_share_a_gpu_train_the_model_of_one_process(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    settings = ("device=cuda", f"rounds={ROUNDS}", "seed=7", 'dtype="float64"', f"evaluate_every={ROUNDS}")
    engines = {"ray": 'kind="ray", address="local", workers=2, block_size=2', "one": 'kind="embedded", block_size=2'}
    models = {
        name: train(
            tmp_path / name,
            experiment_file.load_experiment(None, (*settings, f"engine={{{engine}}}"), trust=Trust.all_code()),
        )
        for name, engine in engines.items()
    }
    assert difference(models["ray"], models["one"]) < 1e-9


def test_a_node_on_a_gpu_answers_every_round_beside_two_on_the_cpu(tmp_path: Path) -> None:
    """That a GPU gives the update of the CPU is tested without processes, in test_node_device.py."""
    pytest.importorskip("flwr")
    with run_server(tmp_path, with_long_waits(PLAIN), ROUNDS) as site:
        site.processes.discreet(CLIENTS[0], "deploy", "client", CLIENTS[0], "--device", "cuda")
        site.join(*CLIENTS[1:])
        site.processes.wait_for_words(CLIENTS[0], "Connected to")
        site.submit("first")
        assert site.submit_exit_code("first") == 0, site.processes.output("submit-first")[-2000:]
        assert [line["clients"] for line in site.rounds("first")] == [3] * ROUNDS
        assert [site.count_releases(name) for name in CLIENTS] == [ROUNDS] * 3
