"""How a deployment begins: what `init` and `enroll` write, who may read it, and what they refuse to write."""

from pathlib import Path

import pytest
from cryptography import x509

from discreet.cli import main as cli
from discreet.deploy.app_folder import AppFolder
from discreet.deploy.certificates import write_certificates
from discreet.deploy.deployment import DeclaredClient, Deployment
from discreet.deploy.enrolment import enroll
from discreet.deploy.learner import Learner
from discreet.deploy.new_deployment import create_deployment
from discreet.deploy.policy import ClientFolder
from discreet.errors import InvalidInput
from discreet.experiment.configuration import experiment_file
from discreet.trust import Trust
from tests.deploy.example_sites import CENTRAL, PLAIN, SECURE, copy_site, write_experiment


@pytest.mark.parametrize("address", ["127.0.0.1:70000", "127.0.0.1:0", "a:99:8000", "bad host/é:8000", ":8000"])
def test_an_address_that_nobody_could_reach_is_refused_and_nothing_is_left(tmp_path: Path, address: str) -> None:
    source = experiment_file.load_experiment(write_experiment(tmp_path, PLAIN))
    with pytest.raises(InvalidInput, match="must be"):
        create_deployment(tmp_path / "site", source, [], address, ["127.0.0.1"])
    assert not (tmp_path / "site").exists()


def test_what_goes_wrong_in_the_middle_leaves_nothing_behind(tmp_path: Path) -> None:
    """Two clients of one name are detected after the first keys are written."""
    source = experiment_file.load_experiment(write_experiment(tmp_path, PLAIN))
    twice = [DeclaredClient(name="north", examples=400)] * 3
    with pytest.raises(InvalidInput, match="must have different names"):
        create_deployment(tmp_path / "site", source, twice, "127.0.0.1:8000", ["127.0.0.1"])
    assert not (tmp_path / "site").exists()


def test_two_clients_of_one_name_are_refused() -> None:
    twice = (DeclaredClient(name="north", examples=1), DeclaredClient(name="north", examples=2))
    with pytest.raises(InvalidInput, match="must have different names"):
        Deployment(address="a:1", server_key="0" * 64, clients=twice)


def test_a_name_that_is_no_file_name_is_refused() -> None:
    with pytest.raises(InvalidInput, match="name"):
        DeclaredClient(name="../north", examples=1)


def test_init_says_when_the_server_will_see_updates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text, seen in (("central", CENTRAL, True), ("plain", PLAIN, False), ("secure", SECURE, False)):
        assert cli.run(["deploy", "init", str(tmp_path / name), str(write_experiment(tmp_path, text))]) == 0
        assert ("the server sees updates in clear" in capsys.readouterr().out) == seen


def test_the_servers_certificate_names_its_hosts(tmp_path: Path) -> None:
    write_certificates(tmp_path, ["fl.example.org", "10.0.0.5"])
    made = x509.load_pem_x509_certificate((tmp_path / "server.crt").read_bytes())
    named = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert named.get_values_for_type(x509.DNSName) == ["fl.example.org"]
    assert [str(each) for each in named.get_values_for_type(x509.IPAddress)] == ["10.0.0.5"]
    made.verify_directly_issued_by(x509.load_pem_x509_certificate((tmp_path / "ca.crt").read_bytes()))


def test_secrets_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
    site = copy_site(tmp_path, SECURE)
    secret = [*site.server.glob("*.key"), *(tmp_path / "client-0").glob("*.key")]
    assert len(secret) == 6
    assert {path.stat().st_mode & 0o777 for path in secret} == {0o600}
    shared = [path for path in (site.app).rglob("*") if path.suffix == ".key"]
    assert shared == []


def test_a_client_enrolls_into_an_empty_folder_that_is_then_its_owners_alone(tmp_path: Path) -> None:
    site, node = copy_site(tmp_path, PLAIN), tmp_path / "empty"
    node.mkdir(mode=0o755)
    enroll(AppFolder.open(site.app), "client-0", node, None)
    assert node.stat().st_mode & 0o777 == 0o700


def test_a_client_whose_table_is_not_there_is_told_at_once(tmp_path: Path) -> None:
    site = copy_site(tmp_path, PLAIN)
    with pytest.raises(InvalidInput, match=r"There is no file .*nofile\.csv"):
        enroll(AppFolder.open(site.app), "client-0", tmp_path / "again", tmp_path / "nofile.csv")
    assert not (tmp_path / "again").exists()


TABLE = """\
rounds = 2
model = { kind = "linear" }

[task]
kind = "csv"
path = "table.csv"
client = "hospital"
label = "ill"
ranges = "ranges.toml"
test_fraction = 0.0

[privacy]
unit = "example"
against = "server"
epsilon = 4.0
delta = 1e-3

[algorithm]
recipe = "pfl"
local_steps = 1
sampling_rate = 0.5
clip_norm = 0.5
learning_rate = 1.0
"""
RANGES = "[columns]\nage = { min = 0, max = 100 }\nill = { values = [0, 1] }\n"


def table(path: Path, hospital: str, rows: int) -> Path:
    lines = [f"{hospital},{20 + 3 * row},{row % 2}" for row in range(rows)]
    path.write_text("\n".join(["hospital,age,ill", *lines]) + "\n")
    return path


def tables(folder: Path) -> AppFolder:
    """An experiment on tables. The server has a stand-in of the same columns; only the clients have rows."""
    (folder / "ranges.toml").write_text(RANGES)
    table(folder / "table.csv", "nowhere", 4)
    source = experiment_file.load_experiment(write_experiment(folder, TABLE))
    declared = [DeclaredClient(name="north", examples=12), DeclaredClient(name="south", examples=9)]
    create_deployment(folder / "site", source, declared, "127.0.0.1:1", ["127.0.0.1"])
    return AppFolder.open(folder / "site" / "app")


def test_the_clients_of_a_table_must_be_named(tmp_path: Path) -> None:
    (tmp_path / "ranges.toml").write_text(RANGES)
    table(tmp_path / "table.csv", "nowhere", 4)
    with pytest.raises(InvalidInput, match="they must be named"):
        create_deployment(
            tmp_path / "site",
            experiment_file.load_experiment(write_experiment(tmp_path, TABLE)),
            [],
            "127.0.0.1:1",
            ["127.0.0.1"],
        )


def test_a_client_with_a_table_of_its_own_holds_what_was_declared(tmp_path: Path) -> None:
    """When it enrolls, and again whenever its node starts."""
    app = tables(tmp_path)
    enroll(app, "north", tmp_path / "north", table(tmp_path / "north.csv", "north", 12))
    learner = Learner.load(app, ClientFolder.open(tmp_path / "north"), bytes(32), Trust.no_code())
    assert (learner.client, learner.place, learner.data.sizes) == (0, 0, (12,))
    enroll(app, "south", tmp_path / "south", table(tmp_path / "south.csv", "south", 9))
    table(tmp_path / "south.csv", "south", 8)
    with pytest.raises(InvalidInput, match="south was declared with 9 examples to train on, and holds 8"):
        Learner.load(app, ClientFolder.open(tmp_path / "south"), bytes(32), Trust.no_code())


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "has its own table, and none was named. Name this client's own table: --data FILE"),
        (b"hospital,age,ill\nnorth,20,0\n", "north was declared with 12 examples to train on, and holds 1"),
        (b"hospital,years,ill\nnorth,20,0\n", "years"),
        (b"hospital,age,ill\nnorth,20,0\nsouth,20,0\n", "this one has rows of 2 clients"),
        (b"\x00\xff\xfe\x80", "north.csv"),
    ],
    ids=["none", "too few", "another column", "of two", "no table"],
)
def test_a_client_whose_table_can_not_be_trained_on_gets_no_card(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None, why: str
) -> None:
    app, data, node = tables(tmp_path), tmp_path / "north.csv", tmp_path / "north"
    words = ["deploy", "enroll", "north", "--app", str(app.folder), "--out", str(node)]
    if content is not None:
        data.write_bytes(content)
        words += ["--data", str(data)]
    assert cli.run(words) == InvalidInput.exit_code
    assert why in " ".join(capsys.readouterr().err.split())
    assert not node.exists()


def test_a_table_for_a_task_that_is_dealt_out_is_refused(tmp_path: Path) -> None:
    site = copy_site(tmp_path, PLAIN)
    with pytest.raises(InvalidInput, match="the experiment's task is not a table"):
        enroll(AppFolder.open(site.app), "client-0", tmp_path / "new", table(tmp_path / "some.csv", "north", 12))
    assert not (tmp_path / "new").exists()


def test_next_commands_can_be_pasted_where_a_folder_has_a_space(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site, node = copy_site(tmp_path, SECURE), tmp_path / "my node"
    assert cli.run(["deploy", "enroll", "client-0", "--app", str(site.app), "--out", str(node)]) == 0
    said = capsys.readouterr().out
    assert f"  discreet deploy client '{node}'\n" in said
    assert f"discreet deploy accept '{node}'\n" in said
    (site.app / "clients" / "client-0.toml").write_text((node / "client-0.toml").read_text())
    assert cli.run(["deploy", "accept", str(node)]) == 0
    assert f"  discreet deploy accept '{node}' --code CODE\n" in capsys.readouterr().out


def test_a_folder_that_can_not_be_written_is_said_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file is in the place of the folder, because permissions don't bind tests that run as root."""
    site, text = copy_site(tmp_path, PLAIN), write_experiment(tmp_path, PLAIN)
    (tmp_path / "file").write_text("")
    here = tmp_path / "file" / "here"
    for words, what in (
        (["init", str(here), str(text)], "deployment"),
        (["enroll", "client-0", "--app", str(site.app), "--out", str(here)], "client's folder"),
    ):
        assert cli.run(["deploy", *words]) == InvalidInput.exit_code
        said = " ".join(capsys.readouterr().err.split())
        assert f"The {what} can't be created at {here} (Not a directory)." in said


def test_a_folder_that_may_not_be_looked_into_is_said_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = copy_site(tmp_path, PLAIN)
    (tmp_path / "theirs").mkdir()

    def deny(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", deny)
    with pytest.raises(InvalidInput, match=r"theirs can't be looked into \(Permission denied\)"):
        enroll(AppFolder.open(site.app), "client-0", tmp_path / "theirs", None)
