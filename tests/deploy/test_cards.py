"""How a client identifies the others: by the cards that it accepted, and what it does if a server shows other cards."""

from dataclasses import replace
from pathlib import Path

import pytest

from discreet.cli import main as cli
from discreet.deploy.certificates import write_signing_key
from discreet.deploy.deployment import Card
from discreet.deploy.deployment_folder import DeploymentFolder
from discreet.deploy.peer_cards import PeerCards
from discreet.deploy.policy import ClientFolder, PolicyRefusal
from discreet.engines.secure_terms import SessionPlan
from discreet.errors import InvalidInput
from discreet.experiment.configuration import toml_document
from discreet.part import to_plain
from discreet.secure_sums.secagg.session_terms import Terms
from tests.deploy.example_sites import SECURE, copy_site


def other_card(site: DeploymentFolder, folder: Path, name: str) -> Card:
    """Replace a client's card by one that the server invented."""
    (own,) = [card for card in site.deployment.read_cards(site.app) if card.name == name]
    made = replace(own, identity=write_signing_key(folder / "made-up.key"))
    (site.app / "clients" / f"{name}.toml").write_text(toml_document.format_toml(to_plain(made)))
    return made


def without_members(node: Path) -> None:
    path = node / "policy.toml"
    path.write_text(path.read_text().partition("\n[members]\n")[0])


def test_a_client_whose_card_was_changed_after_it_was_accepted_is_refused_at_the_start(tmp_path: Path) -> None:
    site = copy_site(tmp_path, SECURE)
    ClientFolder.open(tmp_path / "client-0")
    other_card(site, tmp_path, "client-1")
    with pytest.raises(PolicyRefusal, match=r"not those that policy.toml pins as members: client-1\."):
        ClientFolder.open(tmp_path / "client-0")


def test_a_secure_sum_with_keys_that_were_not_accepted_is_refused(tmp_path: Path) -> None:
    """The server plays the second client, with a matching card."""
    site = copy_site(tmp_path, SECURE)
    policy = ClientFolder.open(tmp_path / "client-0").policy
    accepted = [bytes.fromhex(card.identity) for card in site.deployment.read_cards(site.app)]
    forged = [accepted[0], bytes.fromhex(other_card(site, tmp_path, "client-1").identity), accepted[2]]
    asked = SessionPlan(0, 1, 2)

    def terms(identities: list[bytes]) -> Terms:
        return Terms.choose(clients=3, length=5, identities=tuple(identities), leaving=1)

    policy.allow_terms(terms(accepted), accepted, asked)
    with pytest.raises(PolicyRefusal, match="does not have among its members"):
        policy.allow_terms(terms(forged), forged, asked)
    with pytest.raises(PolicyRefusal, match="discreet deploy accept"):
        replace(policy, members=None).allow_terms(terms(accepted), accepted, asked)


def test_cards_are_pinned_only_by_the_code_that_all_of_them_give(tmp_path: Path) -> None:
    site = copy_site(tmp_path, SECURE)
    for name in ("client-0", "client-1"):
        without_members(tmp_path / name)
    at_home, there = PeerCards.open(tmp_path / "client-0"), PeerCards.open(tmp_path / "client-1")
    assert at_home.code == there.code
    other_card(site, tmp_path, "client-2")
    shown = PeerCards.open(tmp_path / "client-0")  # what a server that lies shows to one of them
    assert shown.code != there.code
    assert [name for name, each in shown.fingerprints.items() if each != there.fingerprints[name]] == ["client-2"]
    with pytest.raises(InvalidInput, match=f"have the code {shown.code}, but you typed '{there.code}'"):
        shown.pin(there.code)
    assert ClientFolder.open(tmp_path / "client-0").policy.members is None
    at_home.pin(there.code.upper().replace("-", " "))  # as somebody would type it
    assert ClientFolder.read(tmp_path / "client-0").policy.members == {
        card.name: card.identity for card in at_home.membership.cards
    }


def test_the_code_of_all_cards_is_twice_as_long_as_that_of_one(tmp_path: Path) -> None:
    """An attacker who chooses both sides needs any collision: 160 bits then resist as 80 bits do for one given card."""
    copy_site(tmp_path, SECURE)
    cards = PeerCards.open(tmp_path / "client-0")
    assert [len(each) for each in cards.code.split("-")] == [4] * 10
    assert {tuple(map(len, each.split("-"))) for each in cards.fingerprints.values()} == {(4,) * 5}
    half = "-".join(cards.code.split("-")[:5])
    with pytest.raises(InvalidInput, match="have the code"):
        cards.pin(half)


def test_a_client_whose_own_card_the_server_replaced_is_told(tmp_path: Path) -> None:
    site = copy_site(tmp_path, SECURE)
    without_members(tmp_path / "client-0")
    other_card(site, tmp_path, "client-0")
    with pytest.raises(PolicyRefusal, match="contains a card of 'client-0' that is not this client's own"):
        PeerCards.open(tmp_path / "client-0")


def test_a_node_that_was_not_told_who_the_others_are_says_what_to_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy_site(tmp_path, SECURE)
    without_members(tmp_path / "client-0")
    assert cli.run(["deploy", "client", str(tmp_path / "client-0")]) == 2
    assert "discreet deploy accept" in capsys.readouterr().err
