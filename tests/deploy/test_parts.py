"""The small parts of a deployment: waiting, periods, allowances, cards, certificates and what `init` writes."""

import json
import logging
from contextlib import suppress
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from cryptography import x509

from discreet.cli import main as cli
from discreet.deploy.accepting import Cards
from discreet.deploy.app import App
from discreet.deploy.certificates import write_certificates, write_signing_key
from discreet.deploy.commands import superlink_itself
from discreet.deploy.deployment import Card, Declared, Deployment
from discreet.deploy.enrolment import enroll
from discreet.deploy.entries import main
from discreet.deploy.init import init
from discreet.deploy.journal import Journal
from discreet.deploy.learner import Learner
from discreet.deploy.policy import Owned, Refused
from discreet.deploy.site import Site
from discreet.engines.flower.errors import ClientsRefused
from discreet.engines.flower.waiting import Waiting
from discreet.engines.planned_sums import Planned
from discreet.errors import BudgetRefused, InvalidInput
from discreet.experiment import config, document
from discreet.part import plain
from discreet.secagg import keys
from discreet.secagg.degree import Assumed
from discreet.secagg.terms import Terms
from tests.deploy.sites import PLAIN, SECURE, Wire, changed, copied, wired, written


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
    site = copied(tmp_path, PLAIN)
    monkeypatch.setattr("discreet.deploy.commands._tool", lambda name: name)
    command = superlink_itself(site, "127.0.0.1:8123")
    assert {"--ssl-certfile", "--ssl-keyfile", "--ssl-ca-certfile", "--enable-supernode-auth"} <= set(command)
    assert command[command.index("--port") + 1] == "8123"
    assert "--insecure" not in command


def other_card(site: Site, folder: Path, name: str) -> Card:
    """A card that the server made up, in the place of a client's own."""
    made = Card(name=name, node_key="", identity=write_signing_key(folder / "made-up.key"))
    (site.app / "clients" / f"{name}.toml").write_text(document.written(plain(made)))
    return made


def test_a_client_whose_card_was_changed_after_it_was_accepted_is_refused_at_the_start(tmp_path: Path) -> None:
    site = copied(tmp_path, SECURE)
    Owned.open(tmp_path / "client-0")
    other_card(site, tmp_path, "client-1")
    with pytest.raises(Refused, match=r"not those that policy.toml pins as members: client-1\."):
        Owned.open(tmp_path / "client-0")


def test_a_secure_sum_with_keys_that_were_not_accepted_is_refused(tmp_path: Path) -> None:
    """The server is the second client, with a card to go with it."""
    site = copied(tmp_path, SECURE)
    policy = Owned.open(tmp_path / "client-0").policy
    accepted = [bytes.fromhex(card.identity) for card in site.deployment.cards(site.app)]
    forged = [accepted[0], bytes.fromhex(other_card(site, tmp_path, "client-1").identity), accepted[2]]
    asked = Planned(0, 1, 2)

    def terms(identities: list[bytes]) -> Terms:
        return Terms.chosen(clients=3, length=5, identities=tuple(identities), leaving=1)

    policy.allow_terms(terms(accepted), accepted, asked)
    with pytest.raises(Refused, match="does not have among its members"):
        policy.allow_terms(terms(forged), forged, asked)
    with pytest.raises(Refused, match="discreet deploy accept"):
        replace(policy, members=None).allow_terms(terms(accepted), accepted, asked)


def without_members(node: Path) -> None:
    path = node / "policy.toml"
    path.write_text(path.read_text().partition("\n[members]\n")[0])


def test_cards_are_pinned_only_by_the_code_that_all_of_them_give(tmp_path: Path) -> None:
    site = copied(tmp_path, SECURE)
    for name in ("client-0", "client-1"):
        without_members(tmp_path / name)
    at_home, there = Cards.open(tmp_path / "client-0"), Cards.open(tmp_path / "client-1")
    assert at_home.code == there.code
    other_card(site, tmp_path, "client-2")
    shown = Cards.open(tmp_path / "client-0")  # what a server that lies shows to one of them
    assert shown.code != there.code
    assert [name for name, each in shown.fingerprints.items() if each != there.fingerprints[name]] == ["client-2"]
    with pytest.raises(InvalidInput, match="have the code"):
        shown.accept(there.code)
    assert Owned.open(tmp_path / "client-0").policy.members is None
    at_home.accept(there.code.upper().replace("-", " "))  # as somebody would type it
    assert Owned.read(tmp_path / "client-0").policy.members == {card.name: card.identity for card in at_home.cards}


def test_a_client_whose_own_card_the_server_replaced_is_told(tmp_path: Path) -> None:
    site = copied(tmp_path, SECURE)
    without_members(tmp_path / "client-0")
    other_card(site, tmp_path, "client-0")
    with pytest.raises(Refused, match="another card of 'client-0' than this node's own"):
        Cards.open(tmp_path / "client-0")


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("resolved.toml", "test_fraction = 0.2", "test_fraction = 0.1"),
        ("deployment.toml", 'name = "client-1"', 'name = "another"'),
        ("deployment.toml", "examples = 479", "examples = 480"),
    ],
)
def test_another_task_another_client_or_another_size_has_another_digest(
    tmp_path: Path, file: str, old: str, new: str
) -> None:
    site = copied(tmp_path, PLAIN)
    before, path = App.open(site.app).digest, site.app / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    assert App.open(site.app).digest != before


def on_a_graph(identities: list[bytes], assumed: Assumed) -> Terms:
    return Terms.chosen(clients=len(identities), length=5, identities=tuple(identities), assumed=assumed)


def test_a_graph_is_refused_unless_the_owner_allows_it_and_it_withstands_what_the_noise_was_sized_for(
    tmp_path: Path,
) -> None:
    """Of 300 clients the graph lets 30 collude and 15 leave; the noise was sized for as many, and then for one more."""
    copied(tmp_path, SECURE)
    identities = [keys.identity_of(keys.fresh(32)) for _ in range(300)]
    members = {f"client-{at}": each.hex() for at, each in enumerate(identities)}
    policy = replace(Owned.open(tmp_path / "client-0").policy, members=members)
    terms = on_a_graph(identities, Assumed(colluding=0.1, leaving=0.05))
    assert terms.on_a_graph
    with pytest.raises(Refused, match="nothing is promised against one that lies"):
        policy.allow_terms(terms, identities, Planned(30, 15, 200))
    allowing = replace(policy, graphs=True)
    allowing.allow_terms(terms, identities, Planned(30, 15, 200))
    with pytest.raises(Refused, match=r"0\.1 of 300 clients colluding, and the noise was sized for 31"):
        allowing.allow_terms(terms, identities, Planned(31, 15, 200))
    with pytest.raises(Refused, match=r"0\.05 of 300 clients leaving, and the noise was sized for 16"):
        allowing.allow_terms(terms, identities, Planned(30, 16, 200))


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


def test_updates_that_only_the_server_adds_noise_to_leave_when_the_owner_says_so(tmp_path: Path) -> None:
    site, node = copied(tmp_path, CENTRAL), tmp_path / "client-0"
    algorithm = App.open(site.app).experiment.algorithm
    assert "READ THIS. In this experiment every update leaves in clear" in (node / "policy.toml").read_text()
    with pytest.raises(Refused, match="promise nothing against the server"):
        Owned.open(node).policy.allow_sum(algorithm, secure=False)
    changed(node, "trust_server_with_updates = false", "trust_server_with_updates = true")
    Owned.open(node).policy.allow_sum(algorithm, secure=False)


def test_updates_with_their_own_noise_need_no_such_word(tmp_path: Path) -> None:
    site, node = copied(tmp_path, PLAIN), tmp_path / "client-0"
    assert "!!!" not in (node / "policy.toml").read_text()
    Owned.open(node).policy.allow_sum(App.open(site.app).experiment.algorithm, secure=False)


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


def test_a_client_whose_table_is_not_there_is_told_at_once(tmp_path: Path) -> None:
    site = copied(tmp_path, PLAIN)
    with pytest.raises(InvalidInput, match=r"There is no file .*nofile\.csv"):
        enroll(App.open(site.app), "client-0", tmp_path / "again", tmp_path / "nofile.csv")
    assert not (tmp_path / "again").exists()


def test_a_client_enrolls_into_an_empty_folder_that_is_then_its_owners_alone(tmp_path: Path) -> None:
    site, node = copied(tmp_path, PLAIN), tmp_path / "empty"
    node.mkdir(mode=0o755)
    enroll(App.open(site.app), "client-0", node, None)
    assert node.stat().st_mode & 0o777 == 0o700


def test_a_budget_that_the_clients_have_spent_keeps_its_exit_code(tmp_path: Path) -> None:
    """The policies allow one run and a tenth more, so of a second one too few rounds are affordable."""
    site, heard = copied(tmp_path, SECURE), list[str]()
    codes = []
    for name in ("first", "second"):
        settings = {"folder": str(site.folder), "name": name}
        with suppress(ClientsRefused):
            main(lambda waiting: wired(tmp_path, site, heard), settings, heard.append)
        codes.append(json.loads(site.ended(name).read_text())["exit_code"])
    assert codes == [0, BudgetRefused.exit_code]


@pytest.mark.parametrize(("code", "left", "kind"), [(3, 3, "BudgetRefused"), (1, 2, "InvalidInput")])
def test_submit_says_how_the_run_ended_with_its_kind_and_exit_code(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    code: int,
    left: int,
    kind: str,
) -> None:
    """What Flower would start is played by a process that leaves the end of a run."""
    site = copied(tmp_path, SECURE)
    (tmp_path / "end.json").write_text(json.dumps({"error": "It is spent.", "stopped": None, "exit_code": code}))
    site.ended("first").parent.mkdir()
    played = ["cp", str(tmp_path / "end.json"), str(site.ended("first"))]
    monkeypatch.setattr("discreet.deploy.commands.run", lambda site, name: played)
    ended = cli.run(["deploy", "submit", str(site.folder), "--json"])
    said = json.loads(capfd.readouterr().err)["error"]
    assert (ended, said["kind"]) == (left, kind)
    assert said["message"].startswith("It is spent.")


def test_init_says_when_the_server_will_see_updates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text, seen in (("central", CENTRAL, True), ("plain", PLAIN, False), ("secure", SECURE, False)):
        assert cli.run(["deploy", "init", str(tmp_path / name), str(written(tmp_path, text))]) == 0
        assert ("updates reach the server in clear" in capsys.readouterr().out) == seen


def test_a_node_that_was_not_told_who_the_others_are_says_what_to_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copied(tmp_path, SECURE)
    without_members(tmp_path / "client-0")
    assert cli.run(["deploy", "client", str(tmp_path / "client-0")]) == 2
    assert "discreet deploy accept" in capsys.readouterr().err


def test_flowers_log_has_no_traceback_of_our_own_refusals(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = logging.getLogger("flwr")
    monkeypatch.setattr(log, "filters", [])
    monkeypatch.setattr(log, "propagate", True)
    site = copied(tmp_path, SECURE)
    (site.app / "clients" / "client-0.toml").unlink()
    with pytest.raises(InvalidInput, match="no card of 'client-0'") as refusal:
        main(lambda waiting: Wire({}), {"folder": str(site.folder), "name": "first"}, lambda text: None)
    log.error("It raised an exception", exc_info=refusal.value)
    log.error("So did this", exc_info=ValueError("a fault"))
    assert "no card" not in caplog.text
    assert "Traceback" not in caplog.text.partition("So did this")[0]
    assert "ValueError: a fault" in caplog.text


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
