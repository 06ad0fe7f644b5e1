"""How a deployment begins: what `init` and `enroll` write, for whose eyes, and what they refuse to write."""

from pathlib import Path

import pytest
from cryptography import x509

from discreet.cli import main as cli
from discreet.deploy.app import App
from discreet.deploy.certificates import write_certificates
from discreet.deploy.deployment import Declared, Deployment
from discreet.deploy.enrolment import enroll
from discreet.deploy.init import init
from discreet.deploy.learner import Learner
from discreet.deploy.policy import Owned
from discreet.errors import InvalidInput
from discreet.experiment import config
from tests.deploy.sites import CENTRAL, PLAIN, SECURE, copied, written


@pytest.mark.parametrize("address", ["127.0.0.1:70000", "127.0.0.1:0", "a:99:8000", "bad host/é:8000", ":8000"])
def test_an_address_that_nobody_could_reach_is_refused_and_nothing_is_left(tmp_path: Path, address: str) -> None:
    source = config.load(written(tmp_path, PLAIN))
    with pytest.raises(InvalidInput, match="must be"):
        init(tmp_path / "site", source, [], address, ["127.0.0.1"])
    assert not (tmp_path / "site").exists()


def test_what_goes_wrong_in_the_middle_leaves_nothing_behind(tmp_path: Path) -> None:
    """Two clients of one name are seen after the first keys are written."""
    source = config.load(written(tmp_path, PLAIN))
    twice = [Declared(name="north", examples=400)] * 3
    with pytest.raises(InvalidInput, match="must differ in name"):
        init(tmp_path / "site", source, twice, "127.0.0.1:8000", ["127.0.0.1"])
    assert not (tmp_path / "site").exists()


def test_two_clients_of_one_name_are_refused() -> None:
    twice = (Declared(name="north", examples=1), Declared(name="north", examples=2))
    with pytest.raises(InvalidInput, match="must differ in name"):
        Deployment(address="a:1", server_key="0" * 64, clients=twice)


def test_a_name_that_is_no_file_name_is_refused() -> None:
    with pytest.raises(InvalidInput, match="name"):
        Declared(name="../north", examples=1)


def test_init_says_when_the_server_will_see_updates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text, seen in (("central", CENTRAL, True), ("plain", PLAIN, False), ("secure", SECURE, False)):
        assert cli.run(["deploy", "init", str(tmp_path / name), str(written(tmp_path, text))]) == 0
        assert ("updates reach the server in clear" in capsys.readouterr().out) == seen


def test_the_servers_certificate_names_its_hosts(tmp_path: Path) -> None:
    write_certificates(tmp_path, ["fl.example.org", "10.0.0.5"])
    made = x509.load_pem_x509_certificate((tmp_path / "server.crt").read_bytes())
    named = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert named.get_values_for_type(x509.DNSName) == ["fl.example.org"]
    assert [str(each) for each in named.get_values_for_type(x509.IPAddress)] == ["10.0.0.5"]
    made.verify_directly_issued_by(x509.load_pem_x509_certificate((tmp_path / "ca.crt").read_bytes()))


def test_secrets_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
    site = copied(tmp_path, SECURE)
    secret = [*site.server.glob("*.key"), *(tmp_path / "client-0").glob("*.key")]
    assert len(secret) == 6
    assert {path.stat().st_mode & 0o777 for path in secret} == {0o600}
    shared = [path for path in (site.app).rglob("*") if path.suffix == ".key"]
    assert shared == []


def test_a_client_enrolls_into_an_empty_folder_that_is_then_its_owners_alone(tmp_path: Path) -> None:
    site, node = copied(tmp_path, PLAIN), tmp_path / "empty"
    node.mkdir(mode=0o755)
    enroll(App.open(site.app), "client-0", node, None)
    assert node.stat().st_mode & 0o777 == 0o700


def test_a_client_whose_table_is_not_there_is_told_at_once(tmp_path: Path) -> None:
    site = copied(tmp_path, PLAIN)
    with pytest.raises(InvalidInput, match=r"There is no file .*nofile\.csv"):
        enroll(App.open(site.app), "client-0", tmp_path / "again", tmp_path / "nofile.csv")
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


def test_a_client_with_a_table_of_its_own_holds_what_was_declared(tmp_path: Path) -> None:
    """The server has a stand-in of the same columns; the clients' rows are nowhere but with them."""
    (tmp_path / "ranges.toml").write_text(RANGES)
    table(tmp_path / "table.csv", "nowhere", 4)
    source = config.load(written(tmp_path, TABLE))
    with pytest.raises(InvalidInput, match="they must be named"):
        init(tmp_path / "site", source, [], "127.0.0.1:1", ["127.0.0.1"])
    declared = [Declared(name="north", examples=12), Declared(name="south", examples=9)]
    init(tmp_path / "site", source, declared, "127.0.0.1:1", ["127.0.0.1"])
    app = App.open(tmp_path / "site" / "app")
    enroll(app, "north", tmp_path / "north", table(tmp_path / "north.csv", "north", 12))
    learner = Learner.of(app, Owned.open(tmp_path / "north"), bytes(32))
    assert (learner.client, learner.place, learner.data.sizes) == (0, 0, (12,))
    enroll(app, "south", tmp_path / "south", table(tmp_path / "south.csv", "south", 8))
    with pytest.raises(InvalidInput, match="south was declared with 9 examples to train on, and holds 8"):
        Learner.of(app, Owned.open(tmp_path / "south"), bytes(32))
