"""Promises about tables that only their owners have: a node checks its own rows, its owner accepts the ranges."""

import shutil
from pathlib import Path

import pytest

import discreet
from discreet.cli import main as cli
from discreet.deploy.app_folder import AppFolder
from discreet.deploy.client_node import ClientNode
from discreet.deploy.deployed_run import DeployedRun
from discreet.deploy.deployment import CARDS_FOLDER, DeclaredClient
from discreet.deploy.deployment_folder import DeploymentFolder
from discreet.deploy.enrolment import enroll
from discreet.deploy.new_deployment import create_deployment
from discreet.deploy.peer_cards import PeerCards
from discreet.deploy.policy import PolicyRefusal
from discreet.errors import InvalidInput, UnsoundCombination
from discreet.experiment.configuration import experiment_file
from discreet.experiment.run_directory.run_data import read_run
from discreet.privacy.ledger import Budget, Ledger
from discreet.privacy.release import Person
from discreet.report.brief import write_brief
from tests.deploy.example_sites import connect_nodes, edit_policy, write_experiment

EXAMPLE = """\
rounds = 1
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
epsilon = 50.0
delta = 1e-3

[algorithm]
recipe = "pfl"
noise_multiplier = 2.0
sampling_rate = 0.5
clip_norm = 0.5
learning_rate = 1.0
"""
PERSON = EXAMPLE.replace('"example"', '{ kind = "person", column = "patient", at_most = 2 }')
RANGES = '[columns]\npatient = "ignore"\nage = { min = 0, max = 100 }\nill = { values = [0, 1] }\n'
TAKEN = f"taken_from_data = true\n{RANGES}"
NAMES = ("north", "south", "east")


def table(path: Path, hospital: str, persons: str) -> Path:
    """Return a table with a row for each letter, which is the person's name."""
    lines = [f"{hospital},{person},{20 + row},{row % 2}" for row, person in enumerate(persons)]
    path.write_text("\n".join(["hospital,patient,age,ill", *lines]) + "\n")
    return path


def deployment(folder: Path, text: str, ranges: str = RANGES, examples: int = 4, *, accept: bool = False) -> AppFolder:
    (folder / "ranges.toml").write_text(ranges)
    table(folder / "table.csv", "nowhere", "abcd")
    declared = [DeclaredClient(name=name, examples=examples) for name in NAMES]
    source = experiment_file.load_experiment(write_experiment(folder, text))
    create_deployment(folder / "site", source, declared, "127.0.0.1:1", ["127.0.0.1"], accept_data_ranges=accept)
    return AppFolder.open(folder / "site" / "app")


def enroll_clients(folder: Path, app: AppFolder, persons: str, *, accept: bool = False) -> DeploymentFolder:
    """Enroll all clients, each with a table that has one row for each letter of `persons`."""
    for name in NAMES:
        data = table(folder / f"{name}.csv", name, persons)
        enroll(app, name, folder / name, data, accept_data_ranges=accept)
        (app.folder / CARDS_FOLDER / f"{name}.toml").write_text((folder / name / f"{name}.toml").read_text())
    for name in NAMES:
        cards = PeerCards.open(folder / name)
        cards.pin(cards.code)
    return DeploymentFolder(folder / "site")


def card_of(folder: Path, site: DeploymentFolder) -> str:
    """Return the card of a whole run in one process."""
    heard: list[str] = []
    ended = DeployedRun(site, "first").train(connect_nodes(folder, site, heard), heard.append)
    assert ended.completed == 1, heard
    return " ".join((site.run("first") / "guarantee.txt").read_text().split())


def test_a_stand_in_without_the_column_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="has no column 'visitor' for the person"):
        deployment(tmp_path, PERSON.replace('"patient"', '"visitor"'))
    assert not (tmp_path / "site").exists()


def test_a_task_that_is_dealt_out_names_no_persons(tmp_path: Path) -> None:
    """Neither when the deployment is created, nor if somebody edits the agreed folder."""
    digits = EXAMPLE.partition("[task]")[0] + 'task = { kind = "digits", clients = 3 }\n\n[privacy]'
    digits += PERSON.partition("[privacy]")[2]
    with pytest.raises(InvalidInput, match="the task 'digits' has no such column"):
        create_deployment(
            tmp_path / "site",
            experiment_file.load_experiment(write_experiment(tmp_path, digits)),
            [],
            "127.0.0.1:1",
            ["127.0.0.1"],
        )
    plain = digits.replace('{ kind = "person", column = "patient", at_most = 2 }', '"example"')
    create_deployment(
        tmp_path / "site",
        experiment_file.load_experiment(write_experiment(tmp_path, plain)),
        [],
        "127.0.0.1:1",
        ["127.0.0.1"],
    )
    resolved = tmp_path / "site" / "app" / "resolved.toml"
    unit = 'unit = { kind = "person", column = "patient", at_most = 2 }'
    assert 'unit = "example"' in resolved.read_text()
    resolved.write_text(resolved.read_text().replace('unit = "example"', unit))
    with pytest.raises(InvalidInput, match="the task 'digits' has no such column"):
        enroll(AppFolder.open(resolved.parent), "client-0", tmp_path / "node", None)
    assert not (tmp_path / "node").exists()


def test_a_client_whose_table_names_no_persons_gets_no_card(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app = deployment(tmp_path, PERSON)
    data = tmp_path / "north.csv"
    data.write_text("hospital,name,age,ill\n" + "north,a,20,0\n" * 4)
    words = ["deploy", "enroll", "north", "--app", str(app.folder), "--out", str(tmp_path / "north")]
    assert cli.run([*words, "--data", str(data)]) == InvalidInput.exit_code
    assert "has no column 'patient' for the person. Its columns: hospital, name, age, ill." in " ".join(
        capsys.readouterr().err.split()
    )
    assert not (tmp_path / "north").exists()


def test_a_node_whose_table_has_changed_counts_nothing(tmp_path: Path) -> None:
    app = deployment(tmp_path, PERSON)
    enroll_clients(tmp_path, app, "abcd")
    data = tmp_path / "north.csv"
    data.write_text(data.read_text().replace("patient", "name"))
    with pytest.raises(InvalidInput, match="has no column 'patient' for the person"):
        ClientNode.open(tmp_path / "north", lambda line: None)
    table(data, "north", "aaab")
    with pytest.raises(
        InvalidInput, match=r"declared with 4 examples .* holds 3 after rows of persons with more than 2"
    ):
        ClientNode.open(tmp_path / "north", lambda line: None)
    assert not list((tmp_path / "north").glob("*.jsonl"))


def test_rows_beyond_the_bound_are_left_out_at_the_node_and_the_card_says_what_nobody_checked(tmp_path: Path) -> None:
    app = deployment(tmp_path, PERSON)
    site = enroll_clients(tmp_path, app, "aaabbb")
    node = ClientNode.open(tmp_path / "north", lambda line: None)
    assert node.learner.data.sizes == (4,)
    assert any("2 rows are left out" in each for each in node.learner.notices)
    node.close()
    written = card_of(tmp_path, site)
    assert "a client uses at most 2 rows, the first in its own table" in written
    assert "Owner of the data: Each person has one value of 'patient', and rows at one client only" in written
    assert "rows_left_out" not in (site.run("first") / "guarantee.json").read_text()
    brief = write_brief(read_run(site.run("first")))
    assert [line.source for (line,) in brief.checks] == ["owner", "clients", "project"]
    assert brief.onlooker == ("the server: all that it receives",)  # no machine played everybody
    assert brief.protected[0].startswith("one person: the rows with one value of 'patient', at most 2")


IN_TWO = "at_most = 2, clients_at_most = 2"


def test_a_person_at_two_clients_is_declared_and_each_node_counts_for_both(tmp_path: Path) -> None:
    site = enroll_clients(tmp_path, deployment(tmp_path, PERSON.replace("at_most = 2", IN_TWO)), "aaabbb")
    assert "clients_at_most = 2" in (tmp_path / "north" / "policy.toml").read_text()
    written = card_of(tmp_path, site)
    assert "Owner of the data: Each person has one value of 'patient', and rows at no more than 2 clients" in written
    (ledger,) = (tmp_path / "north").glob("*.jsonl")
    (budget,) = Ledger.open(ledger).budgets
    assert budget.unit == Person(column="patient", at_most=2, clients_at_most=2)
    assert '"separate":true' in ledger.read_text().replace(" ", "")


def test_a_policy_for_persons_at_one_client_refuses_an_experiment_that_declares_two(tmp_path: Path) -> None:
    enroll_clients(tmp_path, deployment(tmp_path, PERSON.replace("at_most = 2", IN_TWO)), "abcd")
    edit_policy(tmp_path / "north", "clients_at_most = 2", "clients_at_most = 1")
    with pytest.raises(InvalidInput, match=r"does not bound the rows of that person"):
        ClientNode.open(tmp_path / "north", lambda line: None)


def test_a_policy_that_counts_persons_refuses_an_experiment_that_does_not(tmp_path: Path) -> None:
    app = deployment(tmp_path, EXAMPLE)
    enroll_clients(tmp_path, app, "abcd")
    edit_policy(tmp_path / "north", 'unit = "example"', 'unit = { kind = "person", column = "patient", at_most = 2 }')
    with pytest.raises(
        InvalidInput, match=r"policy.toml has a budget for one person \(column 'patient', at most 2 rows"
    ):
        ClientNode.open(tmp_path / "north", lambda line: None)
    assert not list((tmp_path / "north").glob("*.jsonl"))


def test_a_shared_ledger_for_examples_takes_no_experiment_for_persons(tmp_path: Path) -> None:
    app, ledgers = deployment(tmp_path, PERSON), tmp_path / "ledgers"
    ledgers.mkdir()
    budget = Budget(unit="example", relation="zero_out", view="server", epsilon=50.0, delta=1e-3)
    Ledger.create(ledgers / "ledger.jsonl", [budget], "filter")
    data = table(tmp_path / "north.csv", "north", "abcd")
    with pytest.raises(InvalidInput, match=r"has a budget for one example, .* may bring another in"):
        enroll(app, "north", tmp_path / "north", data, ledgers)
    assert not (tmp_path / "north").exists()


def test_ranges_from_data_are_accepted_by_the_server_and_by_every_client(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InvalidInput, match="--accept-data-ranges"):
        deployment(tmp_path, EXAMPLE, TAKEN)
    assert not (tmp_path / "site").exists()
    words = [
        "deploy",
        "init",
        str(tmp_path / "site"),
        str(tmp_path / "experiment.toml"),
        "--clients",
        "north=4,south=4",
    ]
    assert cli.run([*words, "--accept-data-ranges"]) == 0
    assert "Warning: the ranges that scale the columns were taken from data" in capsys.readouterr().out
    app = AppFolder.open(tmp_path / "site" / "app")
    data = table(tmp_path / "north.csv", "north", "abcd")
    words = ["deploy", "enroll", "north", "--app", str(app.folder), "--out", str(tmp_path / "north")]
    assert cli.run([*words, "--data", str(data)]) == InvalidInput.exit_code
    assert "--accept-data-ranges" in capsys.readouterr().err
    assert not (tmp_path / "north").exists()


def test_a_run_on_accepted_ranges_warns_and_its_card_never_calls_them_public(tmp_path: Path) -> None:
    site = enroll_clients(tmp_path, deployment(tmp_path, EXAMPLE, TAKEN, accept=True), "abcd", accept=True)
    written = card_of(tmp_path, site)
    assert "they were taken from the data, and reveal" in written
    assert "ranges are public" not in written
    edit_policy(tmp_path / "north", "data_ranges = true", "data_ranges = false")
    with pytest.raises(PolicyRefusal, match="its owner sets data_ranges = true"):
        ClientNode.open(tmp_path / "north", lambda line: None)


def test_the_model_of_clients_own_tables_predicts_from_the_run_directory_alone(tmp_path: Path) -> None:
    site = enroll_clients(tmp_path, deployment(tmp_path, EXAMPLE), "abcd")
    card_of(tmp_path, site)
    away = tmp_path / "away"
    shutil.move(site.run("first"), away)
    shutil.rmtree(tmp_path / "site")
    (tmp_path / "table.csv").unlink()
    run = discreet.load(away)
    predicted = run.predict({"age": [20.0, 90.0]})
    assert set(predicted) <= {"0", "1"}
    assert predicted.probabilities["0"][0] + predicted.probabilities["1"][0] == pytest.approx(1)
    assert run.export("torchscript").is_file()
    assert "| age | a number from 0 to 100 |" in run.model_card()


CLIENT_LEVEL = (
    EXAMPLE.partition("[privacy]")[0].replace("test_fraction = 0.0", "test_fraction = 0.0\nmax_multiplicity = 2")
    + """\
[privacy]
unit = "client"
against = "public"
epsilon = 8.0
delta = 1e-3

[algorithm]
recipe = "dp_fedavg"
steps = 1
batch_size = 2
learning_rate = 0.1
clip_norm = 1.0
sampling = { kind = "everyone" }
"""
)


def test_nobody_enrolls_into_a_ledger_for_examples_where_one_may_lie_in_two_clients(tmp_path: Path) -> None:
    app = deployment(tmp_path, CLIENT_LEVEL)
    (tmp_path / "ledgers").mkdir()
    budget = Budget(unit="example", relation="zero_out", view="public", epsilon=50.0, delta=1e-3)
    Ledger.create(tmp_path / "ledgers" / "ledger.jsonl", [budget], "filter")
    data = table(tmp_path / "north.csv", "north", "abcd")
    with pytest.raises(UnsoundCombination, match="up to 2 clients may hold the same example"):
        enroll(app, "north", tmp_path / "north", data, tmp_path / "ledgers")
    assert not (tmp_path / "north").exists()


def test_a_node_with_such_a_budget_does_not_start(tmp_path: Path) -> None:
    enroll_clients(tmp_path, deployment(tmp_path, CLIENT_LEVEL), "abcd")
    node = tmp_path / "north"
    ClientNode.open(node, lambda line: None).close()
    edit_policy(node, 'unit = "client"', 'unit = "example"')
    edit_policy(node, 'relation = "add_or_remove"', 'relation = "zero_out"')
    with pytest.raises(UnsoundCombination, match=r"policy\.toml has a budget for one example"):
        ClientNode.open(node, lambda line: None)
