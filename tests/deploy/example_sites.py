"""A deployment in a folder, for tests: three clients of the digits, complete except for a network."""

import atexit
import math
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import TypeAlias

from discreet.deploy.app_folder import AppFolder
from discreet.deploy.client_node import ClientNode
from discreet.deploy.deployment import CARDS_FOLDER
from discreet.deploy.deployment_folder import DeploymentFolder
from discreet.deploy.enrolment import enroll
from discreet.deploy.new_deployment import create_deployment
from discreet.deploy.peer_cards import PeerCards
from discreet.experiment.configuration import experiment_file
from discreet.trust import Trust

SECURE = """\
rounds = 3
seed = 7
task = { kind = "digits", clients = 3, partition = "iid" }
model = { kind = "linear" }
evaluate_every = 1
engine = { kind = "flower", timeout = 60, patience = 4 }

[privacy]
unit = "example"
against = "server"
epsilon = 4.0
delta = 1e-4

[algorithm]
recipe = "ddp_fedavg"
learning_rate = 2.0
clip_norm = 0.5
sampling_rate = 0.5
dropouts = 1
"""

PLAIN = """\
rounds = 3
seed = 7
task = { kind = "digits", clients = 3, partition = "iid" }
model = { kind = "linear" }
engine = { kind = "flower", timeout = 60, patience = 4 }

[privacy]
unit = "example"
against = "server"
epsilon = 4.0
delta = 1e-4

[algorithm]
recipe = "pfl"
local_steps = 2
sampling_rate = 0.5
clip_norm = 0.5
learning_rate = 2.0
"""

CENTRAL = (
    PLAIN.partition("[privacy]")[0]
    + """\
[privacy]
unit = "client"
against = "public"
epsilon = 8.0
delta = 1e-4

[algorithm]
recipe = "dp_fedavg"
steps = 5
batch_size = 32
learning_rate = 0.1
clip_norm = 1.0
sampling = { kind = "everyone" }
"""
)


def with_long_waits(text: str) -> str:
    """Return the experiment with a server that waits for clients as long as their nodes are online."""
    limits = "timeout = 60, patience = 4"
    assert limits in text
    return text.replace(limits, "timeout = 600, patience = 600")


def write_experiment(folder: Path, text: str) -> Path:
    path = folder / "experiment.toml"
    path.write_text(text)
    return path


def create_site(folder: Path, text: str, address: str = "127.0.0.1:1") -> DeploymentFolder:
    """Create a deployment whose clients are enrolled and have accepted each other's cards."""
    source = experiment_file.load_experiment(write_experiment(folder, text), trust=Trust.all_code())
    site = DeploymentFolder(folder / "site")
    create_deployment(site.folder, source, [], address, ["127.0.0.1"])
    app = AppFolder.open(site.app)
    for each in app.deployment.clients:
        node = folder / each.name
        enroll(app, each.name, node, None)
        (app.folder / CARDS_FOLDER / f"{each.name}.toml").write_text((node / f"{each.name}.toml").read_text())
        edit_policy(node, "seeds = false", "seeds = true")
    for each in app.deployment.clients:
        cards = PeerCards.open(folder / each.name)
        cards.pin(cards.code)
    return site


@cache
def _pattern(text: str) -> Path:
    """Created once in a process and then copied, because keys and noise take a moment."""
    folder = Path(mkdtemp(prefix="discreet-site-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    create_site(folder, text)
    return folder


def copy_site(folder: Path, text: str) -> DeploymentFolder:
    """Create a deployment as `create_site` does, with the same keys as other copies."""
    shutil.copytree(_pattern(text), folder, dirs_exist_ok=True)
    return DeploymentFolder(folder / "site")


def edit_policy(node: Path, old: str, new: str) -> None:
    """Edit a policy, as its owner would."""
    path = node / "policy.toml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


Replies: TypeAlias = Iterator[tuple[int, bytes]]


def add_shared(requests: Mapping[int, bytes], shared: bytes) -> dict[int, bytes]:
    """Return the requests as nodes get them: each followed by the bytes that all get."""
    return {node: own + shared for node, own in requests.items()}


@dataclass
class Wire:
    """A network in one process that records messages and drops them where `lost(node, number of the exchange)`."""

    nodes_at: dict[int, ClientNode]
    lost: Callable[[int, int], bool] = lambda node, number: False
    passed: list[dict[int, tuple[bytes, bytes]]] = field(default_factory=list)

    def nodes(self) -> list[int]:
        return list(self.nodes_at)

    def exchange(
        self, requests: Mapping[int, bytes], enough: int, limit: float = math.inf, shared: bytes = b""
    ) -> Replies:
        number = len(self.passed)
        asked = add_shared({node: each for node, each in requests.items() if not self.lost(node, number)}, shared)
        self.passed.append({node: (each, self.nodes_at[node].answer(each)) for node, each in asked.items()})
        return iter([(node, reply) for node, (_, reply) in self.passed[-1].items()])


def connect_nodes(folder: Path, site: DeploymentFolder, heard: list[str]) -> Wire:
    names = [each.name for each in site.deployment.clients]
    return Wire({100 + at: ClientNode.open(folder / name, heard.append) for at, name in enumerate(names)})
