"""Clients that an older version enrolled: no release of examples satisfies their budgets."""

from dataclasses import replace
from pathlib import Path

import pytest

from discreet.cli import main as cli
from discreet.deploy.app_folder import AppFolder
from discreet.deploy.client_ledger import ClientLedger, round_releases
from discreet.deploy.client_node import ClientNode, today
from discreet.deploy.enrolment import enroll
from discreet.deploy.policy import ClientFolder, PolicyRefusal
from discreet.errors import InvalidInput
from discreet.privacy.ledger import Ledger
from discreet.privacy.release import Release
from discreet.privacy.wording import describe_relation
from tests.deploy.example_sites import CENTRAL, PLAIN, SECURE, copy_site, edit_policy

NEW, OLD = 'relation = "zero_out"', 'relation = "add_or_remove"'


def older(folder: Path) -> tuple[AppFolder, Path, tuple[Release, ...]]:
    """A client as an older version left it: a policy, and a ledger that has counted a round."""
    app, node = AppFolder.open(copy_site(folder, PLAIN).app), folder / "client-0"
    edit_policy(node, NEW, OLD)
    asked = round_releases(app.experiment.algorithm, app.population, 0, 0)
    before = tuple(replace(each, relation="add_or_remove") for each in asked)
    ClientLedger(node, ClientFolder.open(node).policy, None).reserve("an earlier round", before, today())()
    return app, node, asked


@pytest.mark.parametrize(("text", "relation"), [(PLAIN, "zero_out"), (SECURE, "zero_out"), (CENTRAL, "add_or_remove")])
def test_a_client_enrolls_with_a_budget_that_the_experiment_keeps(tmp_path: Path, text: str, relation: str) -> None:
    copy_site(tmp_path, text)
    (budget,) = ClientFolder.open(tmp_path / "client-0").policy.budgets
    assert budget.relation == relation
    assert f"\n# {describe_relation(budget.relation, budget.unit)}\n" in (tmp_path / "client-0/policy.toml").read_text()


def test_a_promise_for_examples_that_noise_for_clients_keeps_is_for_blanks_too(tmp_path: Path) -> None:
    text = CENTRAL.replace('unit = "client"', 'unit = "example"').replace("epsilon = 8.0", "epsilon = 30.0")
    copy_site(tmp_path, text)
    (budget,) = ClientFolder.open(tmp_path / "client-0").policy.budgets
    assert (budget.unit, budget.relation) == ("example", "zero_out")


def test_an_older_nodes_ledger_refuses_the_round_and_says_how_to_go_on(tmp_path: Path) -> None:
    _, node, asked = older(tmp_path)
    books = ClientLedger(node, ClientFolder.open(node).policy, None)
    before = books.open_ledger(today()).path.read_bytes()
    with pytest.raises(PolicyRefusal, match=r"does not protect what .* asks for.* so a removed one shows") as refused:
        books.reserve("round", asked, today())
    assert "Correct `budgets` in policy.toml" in refused.value.fix
    assert "discreet ledger restate PATH" in refused.value.fix
    assert books.open_ledger(today()).path.read_bytes() == before


def test_an_older_node_does_not_start_until_its_owner_has_restated_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, node, asked = older(tmp_path)
    monkeypatch.setattr("os.umask", lambda mask: 0)
    assert cli.run(["deploy", "client", str(node)]) == PolicyRefusal.exit_code
    assert "discreet ledger restate PATH" in capsys.readouterr().err
    (path,) = node.glob("ledger*.jsonl")
    before = Ledger.open(path).summary()["budgets"][0]["spent"]
    assert cli.run(["ledger", "restate", str(path)]) == 0
    edit_policy(node, OLD, NEW)
    opened = ClientNode.open(node, lambda text: None)
    opened.check_ready()
    assert opened.ledger.open_ledger(today()).summary()["budgets"][0]["spent"] == before > 0
    opened.ledger.reserve("round", asked, today())()
    assert opened.ledger.open_ledger(today()).summary()["budgets"][0]["spent"] > before
    opened.close()


def test_nobody_enrolls_into_an_older_ledger_that_could_not_count_the_experiment(tmp_path: Path) -> None:
    app, node, _ = older(tmp_path)
    with pytest.raises(InvalidInput, match=r"can't count this experiment: .*discreet ledger restate PATH"):
        enroll(app, "client-0", tmp_path / "second", None, node)
    assert not (tmp_path / "second").exists()
    (path,) = node.glob("ledger*.jsonl")
    Ledger.open(path).restate()
    enroll(app, "client-0", tmp_path / "second", None, node)
    assert ClientFolder.open(tmp_path / "second").policy.budgets == Ledger.open(path).budgets
