"""A deployment of hospitals with their own tables, for tests of who takes part."""

import atexit
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from discreet.deploy.app_folder import AppFolder
from discreet.deploy.deployment import CARDS_FOLDER, DeclaredClient
from discreet.deploy.deployment_folder import DeploymentFolder
from discreet.deploy.enrolment import enroll
from discreet.deploy.new_deployment import create_deployment
from discreet.deploy.peer_cards import PeerCards
from discreet.experiment.configuration import experiment_file
from tests.deploy.example_sites import write_experiment

SECURE_TABLE = """\
rounds = 2
model = { kind = "linear" }
engine = { kind = "flower", timeout = 60, patience = 4 }

[task]
kind = "csv"
path = "table.csv"
client = "hospital"
label = "ill"
ranges = "ranges.toml"
test_fraction = 0.0
standardise = false

[privacy]
unit = "example"
against = "server"
epsilon = 4.0
delta = 1e-3

[algorithm]
recipe = "ddp_fedavg"
learning_rate = 2.0
clip_norm = 0.5
sampling_rate = 0.5
dropouts = 1
"""
RANGES = "[columns]\nage = { min = 0, max = 200 }\nill = { values = [0, 1] }\n"
SIZES = {"north": 40, "south": 50, "east": 60, "west": 70}


def write_table(path: Path, hospital: str, rows: int) -> Path:
    lines = [f"{hospital},{20 + 2 * row},{row % 2}" for row in range(rows)]
    path.write_text("\n".join(["hospital,age,ill", *lines]) + "\n")
    return path


def create_hospitals(
    folder: Path, *names: str, text: str = SECURE_TABLE, address: str = "127.0.0.1:1"
) -> DeploymentFolder:
    """Create a deployment in `folder` / "site" for these hospitals, without enrolling them."""
    folder.mkdir(exist_ok=True)
    (folder / "ranges.toml").write_text(RANGES)
    write_table(folder / "table.csv", "nowhere", 10)
    declared = [DeclaredClient(name=name, examples=SIZES[name]) for name in names]
    source = experiment_file.load_experiment(write_experiment(folder, text))
    create_deployment(folder / "site", source, declared, address, ["127.0.0.1"])
    return DeploymentFolder(folder / "site")


def enroll_hospitals(folder: Path, site: DeploymentFolder, *names: str) -> None:
    """Enroll hospitals, each in a folder of its name, and put their cards into the app folder."""
    for name in names:
        enroll(AppFolder.open(site.app), name, folder / name, write_table(folder / f"{name}.csv", name, SIZES[name]))
        shutil.copy(folder / name / f"{name}.toml", site.app / CARDS_FOLDER)


def accept_all(folder: Path, site: DeploymentFolder, *names: str) -> None:
    """Let these hospitals accept the app folder's membership, and put their signatures into it, if there are any."""
    for name in names:
        cards = PeerCards.open(folder / name)
        if (signed := cards.pin(cards.code)) is not None:
            shutil.copy(signed, site.app / CARDS_FOLDER)


def join_hospitals(folder: Path, *names: str) -> DeploymentFolder:
    """Create a deployment whose hospitals are enrolled and have accepted each other, with the same keys each time."""
    shutil.copytree(_pattern(names), folder, dirs_exist_ok=True)
    return DeploymentFolder(folder / "site")


@cache
def _pattern(names: tuple[str, ...]) -> Path:
    folder = Path(mkdtemp(prefix="discreet-hospitals-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    site = create_hospitals(folder, *names)
    enroll_hospitals(folder, site, *names)
    accept_all(folder, site, *names)
    return folder
