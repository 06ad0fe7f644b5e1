"""Where a node trains: on the CPU unless its owner says otherwise, with noise from the CPU in any case."""

from pathlib import Path

import pytest
import torch

from discreet.deploy.app_folder import AppFolder
from discreet.deploy.client_node import ClientNode
from discreet.deploy.journal import Entry
from discreet.deploy.learner import Learner
from discreet.deploy.policy import ClientFolder
from discreet.errors import InvalidInput
from discreet.params import Params
from discreet.trust import Trust
from tests.deploy.example_sites import PLAIN, SECURE, copy_site

UNSEEDED = PLAIN.replace("seed = 7\n", "")


def update_on(device: str, folder: Path, app: AppFolder) -> Params:
    place = torch.device(device)
    learner = Learner.load(app, ClientFolder.read(folder), bytes(32), Trust.no_code(), device=place)
    assert learner.device.type == device
    broadcast = learner.algorithm.broadcast(learner.algorithm.init(learner.params), 0)
    return learner.update("first", broadcast, Entry(attempt=0, broadcast=broadcast.digest.hex()))


def test_a_node_trains_on_the_cpu_by_default(tmp_path: Path) -> None:
    copy_site(tmp_path, PLAIN)
    node = ClientNode.open(tmp_path / "client-0", print)
    assert node.learner.device == torch.device("cpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_node_that_is_to_use_a_missing_gpu_does_not_start(tmp_path: Path) -> None:
    copy_site(tmp_path, PLAIN)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InvalidInput, match="torch finds no CUDA device here"):
        ClientNode.open(tmp_path / "client-0", print, device="cuda")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_learner_on_the_cpu_gives_the_same_bytes_each_time(tmp_path: Path) -> None:
    site = copy_site(tmp_path, UNSEEDED)
    app = AppFolder.open(site.app)
    first, again = (update_on("cpu", tmp_path / "client-0", app) for _ in range(2))
    assert all(torch.equal(first[name], again[name]) for name in first)


@pytest.mark.cuda
@pytest.mark.parametrize("text", [UNSEEDED, SECURE])
def test_a_gpu_gives_the_update_of_the_cpu_with_the_same_noise(tmp_path: Path, text: str) -> None:
    """The streams of a real client are drawn on the host, so only rounding differs."""
    site = copy_site(tmp_path, text)
    app = AppFolder.open(site.app)
    here, there = (update_on(device, tmp_path / "client-0", app) for device in ("cpu", "cuda"))
    for name, value in here.items():
        assert there[name].device.type == "cpu"
        torch.testing.assert_close(
            there[name].double(), value.double(), rtol=1e-3, atol=1.0 if text is SECURE else 1e-4
        )
