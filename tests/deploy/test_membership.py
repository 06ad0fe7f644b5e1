"""Who takes part: a new list of clients has noise of its own, every client signs it, and ledgers go on."""

import errno
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from discreet.cli import main as cli
from discreet.cli.deploy.status_command import open_deployment
from discreet.deploy.app_folder import AppFolder
from discreet.deploy.client_node import ClientNode
from discreet.deploy.deployed_run import DeployedRun
from discreet.deploy.deployment import CARDS_FOLDER, DeclaredClient, read_card, read_record, write_record
from discreet.deploy.deployment_folder import DeploymentFolder
from discreet.deploy.deployment_lock import lock_deployment
from discreet.deploy.deployment_status import read_status
from discreet.deploy.file_switch import SWITCH
from discreet.deploy.key_renewal import renew_keys
from discreet.deploy.membership import Membership, MembershipSignature, check_in_force, signature_name
from discreet.deploy.membership_change import add_clients, revoke_client, take_card
from discreet.deploy.peer_cards import PeerCards
from discreet.deploy.policy import ClientFolder, PolicyRefusal
from discreet.deploy.revoked_keys import AdmittedKeys, is_revoked
from discreet.deploy.status_page import render_status
from discreet.errors import DiscreetError, InvalidInput
from discreet.privacy.ledger import Ledger
from discreet.trust import Trust
from tests.deploy.example_sites import SECURE, Wire, connect_nodes, copy_site, edit_policy
from tests.deploy.hospital_sites import SIZES, accept_all, create_hospitals, enroll_hospitals, join_hospitals

THREE, FOUR = ("north", "south", "east"), ("north", "south", "east", "west")


def files(site: DeploymentFolder) -> dict[str, bytes]:
    paths = [path for path in site.folder.rglob("*") if path.is_file() and path.suffix != ".lock"]
    return {path.relative_to(site.folder).as_posix(): path.read_bytes() for path in paths}


def add_west(site: DeploymentFolder) -> None:
    add_clients(site, [DeclaredClient(name="west", examples=SIZES["west"])], Trust.no_code())


def train(folder: Path, site: DeploymentFolder, name: str, wire: Wire | None = None) -> tuple[int, list[str]]:
    """Train a run, and return its completed rounds and what the server said."""
    said: list[str] = []
    wire = wire or connect_nodes(folder, site, [])
    try:
        outcome = DeployedRun(site, name).train(wire, said.append)
    finally:
        for node in wire.nodes_at.values():
            node.close()
    return outcome.completed, said


def count_releases(node: Path) -> int:
    (path,) = node.glob("ledger-*.jsonl")
    return int(Ledger.open(path).summary()["releases"]["committed"])


def widen_budgets(folder: Path, *names: str) -> None:
    for name in names:
        line = next(
            each for each in (folder / name / "policy.toml").read_text().splitlines() if each.startswith("epsilon")
        )
        edit_policy(folder / name, line, "epsilon = 40.0")


def test_the_noise_of_a_changed_deployment_is_that_of_a_new_one_with_the_same_clients(tmp_path: Path) -> None:
    grown, whole = create_hospitals(tmp_path / "grown", *THREE), create_hospitals(tmp_path / "whole", *FOUR)
    small = create_hospitals(tmp_path / "small", "north", "east", "west")
    three = (grown.app / "resolved.toml").read_bytes()
    add_west(grown)
    assert (grown.app / "resolved.toml").read_bytes() == (whole.app / "resolved.toml").read_bytes() != three
    assert (grown.server / "request_limit").read_bytes() == (whole.server / "request_limit").read_bytes()
    revoke_client(grown, "south", Trust.no_code())
    assert (grown.app / "resolved.toml").read_bytes() == (small.app / "resolved.toml").read_bytes()
    assert grown.deployment.clients == small.deployment.clients
    assert grown.deployment.membership == 3


def test_a_run_with_an_added_client_begins_when_all_have_signed_and_ledgers_go_on(tmp_path: Path) -> None:
    site = join_hospitals(tmp_path, *THREE)
    widen_budgets(tmp_path, *THREE)
    assert train(tmp_path, site, "first")[0] == 2
    before = {name: count_releases(tmp_path / name) for name in THREE}
    add_west(site)
    enroll_hospitals(tmp_path, site, "west")
    widen_budgets(tmp_path, "west")
    accept_all(tmp_path, site, *THREE)
    with pytest.raises(InvalidInput, match=r"Membership 2 is not in force: .* no valid signature of it by west\."):
        train(tmp_path, site, "second", Wire({}))
    with pytest.raises(InvalidInput, match="Membership 2 is not in force"):
        ClientNode.open(tmp_path / "north", lambda line: None)
    accept_all(tmp_path, site, "west")
    completed, said = train(tmp_path, site, "second")
    assert (completed, [line for line in said if ", 4 clients, " in line]) == (2, [said[1], said[2]])
    assert {name: count_releases(tmp_path / name) - before[name] for name in THREE} == dict.fromkeys(THREE, 2)
    assert count_releases(tmp_path / "west") == 2


def test_a_node_refuses_a_new_list_until_its_owner_accepts_it_and_an_old_one_after_that(tmp_path: Path) -> None:
    site = join_hospitals(tmp_path, *THREE)
    shutil.copytree(site.app, tmp_path / "old")
    add_west(site)
    enroll_hospitals(tmp_path, site, "west")
    with pytest.raises(PolicyRefusal, match=r"has membership 2, and .* accepts membership 1"):
        ClientNode.open(tmp_path / "north", lambda line: None)
    accept_all(tmp_path, site, *FOUR)
    ClientNode.open(tmp_path / "north", lambda line: None).close()
    edit_policy(tmp_path / "north", 'app = "../site/app"', 'app = "../old"')
    for opened in (ClientFolder.open, PeerCards.open):
        with pytest.raises(PolicyRefusal, match="has accepted membership 2, which replaced it"):
            opened(tmp_path / "north")


def test_a_server_cannot_add_a_client_that_one_owner_did_not_sign_for(tmp_path: Path) -> None:
    """It shows the list with its own client to everybody, and invents the signature of the owner who refuses."""
    site = join_hospitals(tmp_path, *THREE)
    add_west(site)
    enroll_hospitals(tmp_path, site, "west")
    accept_all(tmp_path, site, "north", "south", "west")
    app = AppFolder.open(site.app)
    membership, path = Membership.open(app), site.app / CARDS_FOLDER / signature_name("east")
    forged = membership.sign("east", bytes(32))
    for each in (forged, MembershipSignature(name="east", membership=2, signature="0" * 128)):
        write_record(each, path)
        assert membership.missing_signatures(site.app) == ["east"]
    borrowed = read_record(MembershipSignature, site.app / CARDS_FOLDER / signature_name("north"))
    write_record(borrowed, path)
    with pytest.raises(InvalidInput, match=r"no valid signature of it by east\."):
        check_in_force(app)


def test_the_status_says_whose_card_and_whose_signature_is_awaited(tmp_path: Path) -> None:
    site = join_hospitals(tmp_path, *THREE)
    assert read_status(site).awaited is None
    add_west(site)
    assert "There is no card of 'west'" in str(read_status(site).awaited)
    enroll_hospitals(tmp_path, site, "west")
    accept_all(tmp_path, site, "north", "south", "west")
    status = read_status(site)
    assert [line for line in status.lines() if line.endswith("no valid signature of it by east.")]
    assert "no valid signature of it by east." in render_status(status, "now")
    accept_all(tmp_path, site, "east")
    assert read_status(site).to_plain()["membership"] == {"number": 2, "awaited": None}


@pytest.mark.parametrize("change", ["another size", "another key", "another number"])
def test_a_signature_is_of_one_list_with_its_sizes_keys_and_number(tmp_path: Path, change: str) -> None:
    site = join_hospitals(tmp_path, *THREE)
    add_west(site)
    enroll_hospitals(tmp_path, site, "west")
    accept_all(tmp_path, site, *FOUR)
    check_in_force(AppFolder.open(site.app))
    path = site.app / "deployment.toml"
    match change:
        case "another size":
            path.write_text(path.read_text().replace("examples = 70", "examples = 700"))
        case "another number":
            path.write_text(path.read_text().replace("membership = 2", "membership = 3"))
        case "another key":
            renew_keys(tmp_path / "west", identity=True)
            shutil.copy(tmp_path / "west" / "west.toml", site.app / CARDS_FOLDER)
    assert Membership.open(AppFolder.open(site.app)).missing_signatures(site.app) == list(FOUR)


def test_a_revoked_client_is_a_drop_out_of_the_run_that_is_going_on(tmp_path: Path) -> None:
    site = join_hospitals(tmp_path, *FOUR)
    wire = connect_nodes(tmp_path, site, [])
    cards, revoked = site.deployment.read_cards(site.app), list[str]()

    def lost(node: int, number: int) -> bool:
        if any("mask" in str(each[100][0][:300]) for each in wire.passed if 100 in each) and not revoked:
            revoked.append("south")
            revoke_client(site, "south", Trust.no_code())
        return node == 101 and bool(revoked)  # the proxy lets it in no longer

    wire.lost = lost
    completed, said = train(tmp_path, site, "first", wire)
    assert completed == 2
    assert [line.split(", ")[1] for line in said if line.startswith("round")][-1] == "3 clients"
    assert any(line == "south is left out of the rounds from round 2 on: its key was revoked." for line in said)
    assert [is_revoked(site.server, card) for card in cards] == [False, True, False, False]
    keys = AdmittedKeys(site.server, cards, str.encode)
    assert [card.name for card in cards if card.node_key.encode() in keys] == ["north", "east", "west"]
    assert (len(keys), len(list(keys))) == (4, 3)
    with pytest.raises(PolicyRefusal, match="has membership 2"):
        connect_nodes(tmp_path, site, [])


def test_a_client_that_is_revoked_before_the_first_sum_does_not_stop_the_nodes_that_run(tmp_path: Path) -> None:
    """They share the server's app folder here, from which its card has gone by the time they are first asked."""
    site = join_hospitals(tmp_path, *FOUR)
    wire = connect_nodes(tmp_path, site, [])

    def lost(node: int, number: int) -> bool:
        if site.deployment.membership == 1:
            revoke_client(site, "south", Trust.no_code())
        return node == 101 and number > 0  # it had said who it is

    wire.lost = lost
    completed, said = train(tmp_path, site, "first", wire)
    assert completed == 2
    assert [line.split(", ")[1] for line in said if line.startswith("round")] == ["3 clients", "3 clients"]


def test_a_client_can_be_locked_out_even_where_the_others_are_too_few(tmp_path: Path) -> None:
    site = copy_site(tmp_path, SECURE)
    before = files(site)
    with pytest.raises(DiscreetError, match=r"client-1 is locked out, .* its task is divided"):
        revoke_client(site, "client-1", Trust.no_code())
    changed = {name for name, _ in files(site).items() ^ before.items()}
    assert changed == {"server/revoked.json"}
    assert [is_revoked(site.server, card) for card in site.deployment.read_cards(site.app)] == [False, True, False]


def test_a_new_node_key_concerns_only_the_server_and_a_new_signing_key_everybody(tmp_path: Path) -> None:
    site = join_hospitals(tmp_path, *THREE)
    before = read_record(type(site.deployment.read_cards(site.app)[0]), tmp_path / "north" / "north.toml")
    renewed = renew_keys(tmp_path / "north")
    assert (renewed.identity, renewed.node_key == before.node_key) == (before.identity, False)
    assert take_card(site, tmp_path / "north" / "north.toml")[1:] == (True, False)
    assert site.deployment.membership == 1
    ClientNode.open(tmp_path / "south", lambda line: None).close()
    renew_keys(tmp_path / "north", identity=True)
    with pytest.raises(PolicyRefusal, match="a card of 'north' that is not this client's own"):
        ClientNode.open(tmp_path / "north", lambda line: None)
    assert take_card(site, tmp_path / "north" / "north.toml")[1:] == (True, True)
    assert site.deployment.membership == 2
    assert PeerCards.open(tmp_path / "south").changes == ([], [], ["north"])
    accept_all(tmp_path, site, *THREE)
    widen_budgets(tmp_path, *THREE)
    assert train(tmp_path, site, "first")[0] == 2


def test_keys_are_renewed_only_while_the_node_is_stopped_and_stay_their_owners(tmp_path: Path) -> None:
    join_hospitals(tmp_path, *THREE)
    node = ClientNode.open(tmp_path / "north", lambda line: None)
    with pytest.raises(InvalidInput, match="north is already running"):
        renew_keys(tmp_path / "north")
    node.close()
    renew_keys(tmp_path / "north", identity=True)
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "north").glob("*.key")} == {0o600}


def test_a_revoked_key_is_not_taken_again(tmp_path: Path) -> None:
    site = join_hospitals(tmp_path, *FOUR)
    revoke_client(site, "south", Trust.no_code())
    add_clients(site, [DeclaredClient(name="south", examples=SIZES["south"])], Trust.no_code())
    shutil.copy(tmp_path / "south" / "south.toml", site.app / CARDS_FOLDER)
    with pytest.raises(InvalidInput, match="was revoked"):
        take_card(site, tmp_path / "south" / "south.toml")
    renew_keys(tmp_path / "south", identity=True)
    take_card(site, tmp_path / "south" / "south.toml")
    assert not any(is_revoked(site.server, card) for card in site.deployment.read_cards(site.app))


def die_before_move(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """End the process, so to speak, before it moves the file with this number of a change to its place."""
    replace_file, moved = os.replace, list[object]()

    def move(source: Path, target: Path) -> None:
        if SWITCH in Path(source).parts:
            moved.append(source)
            if len(moved) == number:
                raise KeyboardInterrupt
        replace_file(source, target)

    monkeypatch.setattr(os, "replace", move)


@pytest.mark.parametrize("number", [2, 3])
def test_a_change_that_was_killed_half_way_is_refused_by_every_node_until_it_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """The number of the membership comes last: an owner who was handed this folder could otherwise sign old noise."""
    site = join_hospitals(tmp_path, *FOUR)
    die_before_move(monkeypatch, number)
    with pytest.raises(KeyboardInterrupt):
        revoke_client(site, "south", Trust.no_code())
    monkeypatch.undo()
    assert site.deployment.membership == 1
    with pytest.raises(PolicyRefusal, match="does not allow the algorithm"):
        ClientNode.open(tmp_path / "north", lambda line: None)
    assert open_deployment(site.folder).deployment.membership == 2
    assert [client.name for client in site.deployment.clients] == ["north", "east", "west"]


def test_a_change_that_could_not_be_finished_is_refused_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in the container of the server, where the app folder is mounted read-only: no later command would work."""
    site, replace_file = join_hospitals(tmp_path, *FOUR), os.replace

    def move(source: Path, target: Path) -> None:
        if site.app in Path(target).parents:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        replace_file(source, target)

    monkeypatch.setattr(os, "replace", move)
    with pytest.raises(InvalidInput, match="app takes no new file from here") as refused:
        add_clients(site, (DeclaredClient(name="fifth", examples=40),), Trust.no_code())
    assert "not in a container" in refused.value.fix
    assert open_deployment(site.folder).deployment.membership == 1
    assert not [path for path in site.folder.rglob("*") if "switch" in path.name and path.suffix != ".lock"]


def kill(*words: object, **options: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("moment", ["before the new files count", "between two of them", "before its card is removed"])
def test_a_revocation_that_was_killed_is_finished_by_running_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    site, other = join_hospitals(tmp_path / "killed", *FOUR), join_hospitals(tmp_path / "whole", *FOUR)
    match moment:
        case "before the new files count":
            monkeypatch.setattr(Path, "rename", kill)
        case "between two of them":
            die_before_move(monkeypatch, 2)
        case "before its card is removed":
            monkeypatch.setattr(Path, "unlink", kill)
    with pytest.raises(KeyboardInterrupt):
        revoke_client(site, "south", Trust.no_code())
    monkeypatch.undo()
    assert revoke_client(site, "south", Trust.no_code()) == revoke_client(other, "south", Trust.no_code())
    assert files(site) == files(other)


def test_a_revoked_key_is_not_taken_again_in_another_spelling(tmp_path: Path) -> None:
    site = join_hospitals(tmp_path, *FOUR)
    card = read_card(tmp_path / "south" / "south.toml", "south")
    revoke_client(site, "south", Trust.no_code())
    add_clients(site, [DeclaredClient(name="south", examples=SIZES["south"])], Trust.no_code())
    write_record(replace(card, node_key=f"{card.node_key} south@example.org"), site.app / CARDS_FOLDER / "south.toml")
    with pytest.raises(InvalidInput, match="as OpenSSH writes it without a comment"):
        site.deployment.read_cards(site.app)


@pytest.mark.parametrize(("field", "words"), [("node_key", "node key"), ("identity", "signing key")])
def test_a_card_with_the_key_of_another_client_is_refused_before_anything_is_written(
    tmp_path: Path, field: str, words: str
) -> None:
    """Otherwise, south could lock north out: with south revoked, north's node key would be let in no longer."""
    site = join_hospitals(tmp_path, *THREE)
    north, south = (read_card(tmp_path / name / f"{name}.toml", name) for name in ("north", "south"))
    write_record(replace(south, **{field: getattr(north, field)}), tmp_path / "copied.toml")
    before = files(site)
    with pytest.raises(InvalidInput, match=f"The cards of 'north' and 'south' have the same {words}") as refused:
        take_card(site, tmp_path / "copied.toml")
    assert files(site) == before
    shutil.copy(tmp_path / "copied.toml", site.app / CARDS_FOLDER / "south.toml")
    with pytest.raises(InvalidInput, match="have the same") as found:
        site.deployment.read_cards(site.app)
    assert str(found.value) == str(refused.value)
    take_card(site, tmp_path / "south" / "south.toml")  # its own card mends it
    assert len(site.deployment.read_cards(site.app)) == 3


Change = Callable[[DeploymentFolder], object]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            lambda site: add_clients(site, [DeclaredClient(name="north", examples=9)], Trust.no_code()),
            "different names",
        ),
        (lambda site: revoke_client(site, "nobody", Trust.no_code()), "'nobody' is not a client"),
        (lambda site: take_card(site, site.folder / "none.toml"), "There is no file"),
        (lambda site: take_card(site, site.folder.parent / "other.toml"), "has no card of that client"),
    ],
    ids=["taken name", "unknown client", "missing card", "strange card"],
)
def test_a_change_that_cannot_be_made_changes_nothing(tmp_path: Path, change: Change, why: str) -> None:
    site = join_hospitals(tmp_path, *THREE)
    text = (tmp_path / "north" / "north.toml").read_text()
    (tmp_path / "other.toml").write_text(text.replace('name = "north"', 'name = "other"'))
    before = files(site)
    with pytest.raises(InvalidInput, match=why):
        change(site)
    assert files(site) == before


def test_clients_are_added_only_while_the_server_is_stopped(tmp_path: Path) -> None:
    site = join_hospitals(tmp_path, *THREE)
    before = files(site)
    with lock_deployment(site), pytest.raises(InvalidInput, match="is already running"):
        add_west(site)
    assert files(site) == before


def test_a_deployment_of_an_older_version_says_that_its_clients_can_not_be_changed(tmp_path: Path) -> None:
    site = join_hospitals(tmp_path, *THREE)
    (site.server / "experiment.toml").unlink()
    with pytest.raises(InvalidInput, match="was created by an older version"):
        add_west(site)


def test_an_owner_whose_policy_wants_larger_sums_is_asked_before_smaller_ones_are_signed(tmp_path: Path) -> None:
    site = join_hospitals(tmp_path, *FOUR)
    revoke_client(site, "south", Trust.no_code())
    cards = PeerCards.open(tmp_path / "north")
    with pytest.raises(PolicyRefusal, match=r"minimum_cohort = 3, and membership 2 plans sums of at least 2 clients"):
        cards.pin(cards.code)
    assert not (tmp_path / "north" / signature_name("north")).exists()
    edit_policy(tmp_path / "north", "minimum_cohort = 3", "minimum_cohort = 2")
    cards = PeerCards.open(tmp_path / "north")
    assert cards.pin(cards.code) == tmp_path / "north" / signature_name("north")


def test_leave_to_run_code_does_not_pass_to_the_files_of_another_membership(tmp_path: Path) -> None:
    site = join_hospitals(tmp_path, *THREE)
    edit_policy(tmp_path / "north", "own_code = false", "own_code = true")
    add_west(site)
    enroll_hospitals(tmp_path, site, "west")
    accept_all(tmp_path, site, "north")
    assert not PeerCards.open(tmp_path / "north").policy.own_code


def test_two_experiments_are_not_signed_under_one_number(tmp_path: Path) -> None:
    site = join_hospitals(tmp_path, *THREE)
    add_west(site)
    enroll_hospitals(tmp_path, site, "west")
    accept_all(tmp_path, site, "north")
    path = site.app / "deployment.toml"
    path.write_text(path.read_text().replace("examples = 70", "examples = 700"))
    with pytest.raises(PolicyRefusal, match="does not allow the algorithm"):
        PeerCards.open(tmp_path / "north")


def test_a_client_that_joins_signs_only_the_experiment_that_it_enrolled_for(tmp_path: Path) -> None:
    site = join_hospitals(tmp_path, *THREE)
    add_west(site)
    enroll_hospitals(tmp_path, site, "west")
    policy, path = (tmp_path / "west" / "policy.toml").read_text(), site.app / "resolved.toml"
    path.write_text(path.read_text().replace("rounds = 2", "rounds = 1"))
    with pytest.raises(PolicyRefusal, match="does not allow the algorithm"):
        PeerCards.open(tmp_path / "west")
    assert (tmp_path / "west" / "policy.toml").read_text() == policy


def test_an_owner_who_removes_the_members_signs_other_cards_but_no_other_experiment(tmp_path: Path) -> None:
    site = join_hospitals(tmp_path, *THREE)
    add_west(site)
    enroll_hospitals(tmp_path, site, "west")
    accept_all(tmp_path, site, "north")
    signed, resolved = tmp_path / "north" / signature_name("north"), site.app / "resolved.toml"
    first, agreed = signed.read_text(), resolved.read_text()
    renew_keys(tmp_path / "west", identity=True)
    shutil.copy(tmp_path / "west" / "west.toml", site.app / CARDS_FOLDER)
    resolved.write_text(agreed.replace("rounds = 2", "rounds = 1"))
    with pytest.raises(PolicyRefusal, match=r"pins as members: west\. .* remove `members` from policy.toml"):
        PeerCards.open(tmp_path / "north")
    path = tmp_path / "north" / "policy.toml"
    path.write_text(path.read_text().partition("\n[members]\n")[0])
    with pytest.raises(PolicyRefusal, match="does not allow the algorithm"):
        PeerCards.open(tmp_path / "north")
    assert signed.read_text() == first
    resolved.write_text(agreed)
    accept_all(tmp_path, site, "north")
    assert signed.read_text() != first


def test_the_commands_say_what_changes_and_what_is_to_be_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = join_hospitals(tmp_path, *THREE)

    def run(*words: str) -> str:
        assert cli.run(["deploy", *words]) == 0
        return capsys.readouterr().out

    said = run("add", str(site.folder), "west=70")
    assert "Added west. Membership 2 has north, south, east, west. Next:" in said
    enroll_hospitals(tmp_path, site, "west")
    shown = run("accept", str(tmp_path / "north"))
    assert "Membership 2 replaces membership 1:\n  joins: west with 70 examples\n" in shown
    assert "  examples: north 40, south 50, east 60, west 70\n" in shown
    assert "a whole run takes, with a tenth of its rounds to spare: ε " in shown
    assert "Ask each client that joins or has a new key" in shown
    code = PeerCards.open(tmp_path / "north").code
    assert "Pinned in" in run("accept", str(tmp_path / "north"), "--code", code)
    policy = (tmp_path / "north" / "policy.toml").read_text()
    assert f"`{AppFolder.open(site.app).digest:.12}…`" in policy
    assert "membership = 2           # the list of clients" in policy
    newcomer = run("accept", str(tmp_path / "west"))
    assert newcomer.startswith("Membership 2:\n  examples: north 40, south 50, east 60, west 70\n")
    assert "a whole run takes, with a tenth of its rounds to spare: ε " in newcomer
    assert "Ask each of the other clients for this code" in newcomer
    assert "Renewed all keys of west" in run("renew", str(tmp_path / "west"), "--identity")
    taken = run("renew", str(site.folder), "--card", str(tmp_path / "west" / "west.toml"))
    assert "west has new keys, so this is membership 3" in taken
    again = run("renew", str(site.folder), "--card", str(tmp_path / "west" / "west.toml"))
    assert " ".join(again.split()) == f"The deployment already has this card: {tmp_path / 'west' / 'west.toml'}."
    assert "Revoked west. Membership 4 has north, south, east." in run("revoke", str(site.folder), "west")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("renew", "north", "--authority"), "are for a server"),
        (("renew", "site", "--identity"), "is for a client"),
        (("renew", "site", "--authority", "--card", "x"), "changes nothing else"),
        (("add", "site", "west"), "must be NAME=EXAMPLES"),
        (("revoke", "north", "south"), "is not a deployment"),
    ],
)
def test_a_command_for_the_wrong_folder_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], why: str
) -> None:
    join_hospitals(tmp_path, *THREE)
    verb, folder, *rest = words
    assert cli.run(["deploy", verb, str(tmp_path / folder), *rest]) == InvalidInput.exit_code
    assert why in capsys.readouterr().err
