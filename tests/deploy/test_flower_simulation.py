"""Flower's own simulation, with Ray: the same experiment, the same secure sums, the same bits."""

from pathlib import Path

import pytest
import torch

from discreet import api
from discreet.deploy.local_deployment import CLIENTS_FOLDER
from discreet.experiment.configuration import experiment_file
from discreet.experiment.loop import training_loop
from discreet.experiment.run_directory.run_record import RunRecord
from discreet.privacy.ledger import Ledger
from tests.deploy.example_sites import SECURE, copy_site, with_long_waits, write_experiment
from tests.deploy.processes import Processes

pytest.importorskip("flwr")
pytest.importorskip("ray")
pytestmark = pytest.mark.deploy

AGREED = with_long_waits(SECURE)


def test_flowers_simulation_trains_the_reference_model_and_every_client_counts(tmp_path: Path) -> None:
    site, processes = copy_site(tmp_path, AGREED), Processes(tmp_path)
    try:
        processes.discreet("simulate", "deploy", "simulate", "site", "--name", "played")
        assert processes.exit_code("simulate") == 0, processes.output("simulate")[-2000:]
    finally:
        processes.end_all()
    torch.set_num_threads(1)
    source = experiment_file.load_experiment(write_experiment(tmp_path, AGREED), ('engine={kind="reference"}',))
    training_loop.start(api.prepare_job(source), tmp_path / "reference", None, None, lambda line: None)
    played = site.rehearsal("played")
    trained = RunRecord.open(played.run("played")).load_model()
    wanted = RunRecord.open(tmp_path / "reference").load_model()
    assert all(torch.equal(trained[name], wanted[name]) for name in wanted)
    for client in played.deployment.clients:
        (ledger,) = (played.folder / CLIENTS_FOLDER / client.name).glob("ledger-*.jsonl")
        assert Ledger.open(ledger).summary()["releases"]["committed"] == 3
