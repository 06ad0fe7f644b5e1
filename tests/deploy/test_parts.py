"""The small parts of a deployment: waiting, periods, allowances, cards, certificates and what `init` writes."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from cryptography import x509

from discreet.deploy.app import App
from discreet.deploy.certificates import write_certificates
from discreet.deploy.commands import superlink
from discreet.deploy.deployment import Declared, Deployment
from discreet.deploy.enrolment import enroll
from discreet.deploy.init import init
from discreet.deploy.journal import Journal
from discreet.deploy.learner import Learner
from discreet.deploy.policy import Owned
from discreet.engines.flower.waiting import Waiting
from discreet.errors import InvalidInput
from discreet.experiment import config
from tests.deploy.sites import PLAIN, SECURE, copied, founded, written


def test_all_are_waited_for_but_once_enough_came_not_for_long() -> None:
    now = [0.0]
    over = Waiting(timeout=100, patience=10, clock=lambda: now[0]).over(asked=3, enough=2)
    assert not over(1)
    now[0] = 50
    assert not over(2)  # from here on patience counts
    now[0] = 59
    assert not over(2)
    assert over(3)
    now[0] = 60
    assert over(2)


def test_without_enough_waiting_ends_with_its_time() -> None:
    now = [0.0]
    over = Waiting(timeout=100, patience=10, clock=lambda: now[0]).over(asked=3, enough=2)
    assert not over(1)
    now[0] = 100
    assert over(1)


@pytest.mark.parametrize(
    ("period", "name"), [("ever", ""), ("year", "2026"), ("quarter", "2026-Q2"), ("month", "2026-04")]
)
def test_a_day_belongs_to_one_period(tmp_path: Path, period: str, name: str) -> None:
    copied(tmp_path, PLAIN)
    policy = Owned.open(tmp_path / "client-0").policy
    assert replace(policy, period=period).period_of(date(2026, 4, 1)) == name


def test_a_new_period_has_a_new_ledger_and_the_old_one_stays(tmp_path: Path) -> None:
    from discreet.deploy.node import Node

    copied(tmp_path, PLAIN)
    node = Node.open(tmp_path / "client-0", lambda text: None)
    for year in (2026, 2027):
        node.spending.ledger(date(year, 1, 1))
    assert sorted(path.name for path in (tmp_path / "client-0").glob("ledger*.jsonl")) == [
        "ledger-2026.jsonl",
        "ledger-2027.jsonl",
    ]


def test_a_run_that_names_a_folder_elsewhere_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="letters and digits"):
        Journal(tmp_path).counted("../elsewhere")


def test_secrets_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
    site = copied(tmp_path, SECURE)
    secret = [*site.server.glob("*.key"), *(tmp_path / "client-0").glob("*.key")]
    assert len(secret) == 6
    assert {path.stat().st_mode & 0o777 for path in secret} == {0o600}
    shared = [path for path in (site.app).rglob("*") if path.suffix == ".key"]
    assert shared == []


def test_the_servers_certificate_names_its_hosts(tmp_path: Path) -> None:
    write_certificates(tmp_path, ["fl.example.org", "10.0.0.5"])
    made = x509.load_pem_x509_certificate((tmp_path / "server.crt").read_bytes())
    named = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert named.get_values_for_type(x509.DNSName) == ["fl.example.org"]
    assert [str(each) for each in named.get_values_for_type(x509.IPAddress)] == ["10.0.0.5"]
    made.verify_directly_issued_by(x509.load_pem_x509_certificate((tmp_path / "ca.crt").read_bytes()))


def test_two_clients_of_one_name_are_refused() -> None:
    twice = (Declared(name="north", examples=1), Declared(name="north", examples=2))
    with pytest.raises(InvalidInput, match="must differ in name"):
        Deployment(address="a:1", server_key="0" * 64, clients=twice)


def test_a_name_that_is_no_file_name_is_refused() -> None:
    with pytest.raises(InvalidInput, match="name"):
        Declared(name="../north", examples=1)


def test_flower_is_started_with_tls_and_with_node_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = founded(tmp_path, PLAIN, "127.0.0.1:8123")
    monkeypatch.setattr("discreet.deploy.commands._tool", lambda name: name)
    command = superlink(site, "127.0.0.1")
    assert {"--ssl-certfile", "--ssl-keyfile", "--ssl-ca-certfile", "--enable-supernode-auth"} <= set(command)
    assert command[command.index("--port") + 1] == "8123"
    assert "--insecure" not in command


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
