"""Python code that an experiment brings: which files it may be, and that a node runs it only if its owner allows it."""

from dataclasses import replace
from pathlib import Path

import pytest

from discreet.cli import main as cli
from discreet.deploy.app_folder import AppFolder, user_files
from discreet.deploy.client_node import ClientNode
from discreet.deploy.enrolment import enroll
from discreet.deploy.local_deployment import CLIENTS_FOLDER, prepare_rehearsal
from discreet.deploy.policy import PolicyRefusal
from discreet.errors import InvalidInput
from discreet.experiment.configuration import toml_document
from discreet.experiment.configuration.experiment_file import Experiment
from discreet.models.networks.user_model import UserModel
from tests.deploy.example_sites import PLAIN, copy_site, create_site, edit_policy, write_experiment

pytestmark = pytest.mark.usefixtures("one_thread")


def test_python_that_the_owner_did_not_allow_is_not_run(tmp_path: Path) -> None:
    own = "import torch\ndef loss(outputs, targets):\n    return torch.nn.functional.cross_entropy(outputs, targets)\n"
    (tmp_path / "losses.py").write_text(own)
    site = create_site(tmp_path, PLAIN.replace("seed = 7\n", 'seed = 7\nloss = "losses.py:loss"\n'))
    mark = tmp_path / "it-ran"
    (site.app / "losses.py").write_text(f"open({str(mark)!r}, 'w').close()\n" + own)
    with pytest.raises(PolicyRefusal, match="The policy does not allow the algorithm"):
        ClientNode.open(tmp_path / "client-0", lambda text: None)
    assert not mark.exists()


def test_a_file_that_would_take_the_place_of_the_apps_own_is_refused(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text("def loss(outputs, targets):\n    return outputs.sum()\n")
    with pytest.raises(InvalidInput, match=r"task\.py has the name of a file of the Flower app"):
        create_site(tmp_path, PLAIN.replace("seed = 7\n", 'seed = 7\nloss = "task.py:loss"\n'))
    assert not (tmp_path / "site").exists()


def marker_code(mark: Path) -> str:
    """Return a user's Python code that writes a file wherever it runs."""
    return f"""\
import torch
open({str(mark)!r}, "w").close()
def loss(outputs, targets):
    return torch.nn.functional.cross_entropy(outputs, targets)
def Net(task):
    return torch.nn.Linear(64, 10)
"""


NETWORK = PLAIN.replace('{ kind = "linear" }', '{ kind = "mine.py:Net" }')
OWN = {"loss": PLAIN.replace("seed = 7\n", 'seed = 7\nloss = "mine.py:loss"\n'), "model": NETWORK}


@pytest.mark.parametrize("what", OWN)
def test_python_in_the_app_folder_runs_on_a_node_when_its_owner_says_so(tmp_path: Path, what: str) -> None:
    """The digest is allowed from the start, as `enroll` writes it; the server's machine ran it during `init`."""
    mark = tmp_path / "it-ran"
    (tmp_path / "mine.py").write_text(marker_code(mark))
    site = create_site(tmp_path, OWN[what])
    assert (site.app / "mine.py").is_file()
    mark.unlink()
    node = tmp_path / "client-0"
    with pytest.raises(
        PolicyRefusal, match=r"files of its own that would run on this machine, mine\.py, and the policy"
    ):
        ClientNode.open(node, lambda text: None)
    assert not mark.exists()
    edit_policy(node, "own_code = false", "own_code = true")
    ClientNode.open(node, lambda text: None).close()
    assert mark.exists()


def test_init_and_enroll_name_the_files_that_would_run_and_enroll_runs_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mark, node = tmp_path / "it-ran", tmp_path / "node"
    (tmp_path / "mine.py").write_text(marker_code(mark))
    words = ["deploy", "init", str(tmp_path / "site"), str(write_experiment(tmp_path, OWN["model"]))]
    assert cli.run(words) == InvalidInput.exit_code
    assert not mark.exists()
    assert "mine.py (6 lines, owned by" in capsys.readouterr().err
    assert cli.run([*words, "--trust"]) == 0
    assert "clients would run your files mine.py. No node starts until its owner" in capsys.readouterr().out
    mark.unlink()
    assert cli.run(["deploy", "enroll", "client-0", "--app", str(tmp_path / "site" / "app"), "--out", str(node)]) == 0
    assert "files of its own (mine.py) that would run on this machine" in capsys.readouterr().out
    assert not mark.exists()
    policy = (node / "policy.toml").read_text()
    assert "!!! READ THIS. This experiment has files of its own, mine.py," in policy
    assert policy.index("mine.py") < policy.index("own_code = false")


def test_who_rehearses_alone_allows_their_own_python(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(marker_code(tmp_path / "it-ran"))
    made = prepare_rehearsal(create_site(tmp_path, OWN["model"]), "first")
    ClientNode.open(made.folder / CLIENTS_FOLDER / "client-0", lambda text: None).close()


def edit_model_line(site_app: Path, kind: str, arguments: str = "{}") -> AppFolder:
    """Return the app folder after the server edited the model's line by hand."""
    path = site_app / "resolved.toml"
    lines = path.read_text().replace('kind = "linear"', f"kind = {kind!r}\narguments = {arguments}")
    assert kind in lines
    path.write_text(lines)
    return AppFolder.open(site_app)


def test_an_installed_module_never_runs_on_a_node_whatever_its_owner_says(tmp_path: Path) -> None:
    """No digest covers what `subprocess` does; here it would create a file."""
    mark = tmp_path / "it-ran"
    site, node = copy_site(tmp_path, PLAIN), tmp_path / "client-0"
    edit_policy(node, "own_code = false", "own_code = true")
    app = edit_model_line(site.app, "subprocess:Popen", f"{{ args = 'touch {mark}', shell = true }}")
    with pytest.raises(InvalidInput, match=r"as file\.py:Name in the experiment's folder, and got 'subprocess:Popen'"):
        ClientNode.open(node, lambda text: None)
    with pytest.raises(InvalidInput, match=r"as file\.py:Name"):
        enroll(app, "client-0", tmp_path / "again", None)
    assert not (tmp_path / "again").exists()
    assert not mark.exists()


@pytest.mark.parametrize(
    "reference",
    [
        "torch.nn:Linear",
        "../net.py:Net",
        "sub/net.py:Net",
        "/tmp/net.py:Net",
        "net\\a.py:Net",
        'a\nb = "c.py:Net',
        "é.py:Net",
    ],
)
def test_only_a_plain_file_beside_the_experiment_is_taken(tmp_path: Path, reference: str) -> None:
    """A line break would add a line to the owner's policy."""
    experiment = AppFolder.open(copy_site(tmp_path, PLAIN).app).experiment
    with pytest.raises(InvalidInput, match=r"as file\.py:Name"):
        user_files(replace(experiment, model=UserModel(kind=reference)))
    with pytest.raises(InvalidInput, match=r"as file\.py:Name"):
        user_files(replace(experiment, loss=reference))
    assert user_files(replace(experiment, loss="a.py:f", model=UserModel(kind="b-2.py:Net"))) == ("a.py", "b-2.py")


FEATURES = """\
rounds = 1
model = { kind = "linear" }
algorithm = { recipe = "fedavg", learning_rate = 0.1, batch_size = 8 }
[task]
kind = "features"
of = { kind = "mnist", clients = 3 }
extractor = { kind = "eyes.py:Eyes", weights = "eyes.safetensors", arguments = { kind = "no:reference" } }
"""


def test_an_extractor_of_ones_own_is_python_too_and_its_weights_are_agreed_on() -> None:
    def files(text: str) -> tuple[str, ...]:
        return user_files(toml_document.build_record(Experiment, toml_document.parse_toml(text, "features")))

    assert files(FEATURES) == ("eyes.py", "eyes.safetensors")
    with pytest.raises(InvalidInput, match=r"weights must be a file in the experiment's folder, and got '\.\./eyes\.s"):
        files(FEATURES.replace("eyes.safetensors", "../eyes.safetensors"))


def test_a_file_that_the_server_forgot_to_hand_out_is_said(tmp_path: Path) -> None:
    site = copy_site(tmp_path, PLAIN)
    app = edit_model_line(site.app, "net.py:Net")
    with pytest.raises(
        InvalidInput, match=r"The experiment names net\.py, and it can't be read in .*app \(No such file"
    ):
        enroll(app, "client-0", tmp_path / "again", None)
