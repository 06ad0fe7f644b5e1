"""Starting points of several tests: a node with a request it would answer, and a secure sum under way."""

from pathlib import Path

import pytest
import torch

from discreet.deploy.app_folder import AppFolder
from discreet.deploy.certificates import read_key
from discreet.deploy.client_node import ClientNode
from discreet.deploy.deployed_run import DeployedRun
from discreet.engines.flower import signed_messages
from discreet.engines.flower.flower_engine import FlowerEngine
from discreet.engines.flower.signed_messages import RequestHeader
from discreet.randomness.streams import RunKey
from tests.deploy.example_sites import PLAIN, SECURE, connect_nodes, copy_site
from tests.deploy.node_requests import RUN, OpenSession, RequestCase


@pytest.fixture
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def request_case(tmp_path: Path) -> RequestCase:
    """A node, and a request that it would answer."""
    site, heard = copy_site(tmp_path, PLAIN), list[str]()
    node, app, key = (
        ClientNode.open(tmp_path / "client-0", heard.append),
        AppFolder.open(site.app),
        read_key(site.server / "server.key"),
    )
    about = RequestHeader(kind="train", run=RUN, experiment=app.digest, round=0, client=0, cohort=(0, 1, 2))
    broadcast = node.learner.algorithm.broadcast(node.learner.algorithm.init(node.learner.params), 0)
    return tmp_path, site, node, about, signed_messages.encode_broadcast(broadcast.params, broadcast.announcement), key


@pytest.fixture
def open_session(tmp_path: Path) -> OpenSession:
    """A secure sum whose session has two more rounds."""
    site, heard = copy_site(tmp_path, SECURE), list[str]()
    wire = connect_nodes(tmp_path, site, heard)
    job = DeployedRun(site, "first").prepare_job(RunKey.from_seed(7), wire, heard.append)
    assert job.remote_engine is not None
    engine = job.remote_engine
    assert isinstance(engine, FlowerEngine)
    return site, wire, engine, job.algorithm.broadcast(job.algorithm.init(job.params), 0)
