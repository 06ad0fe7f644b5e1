"""A budget for examples refuses runs that protect one client, if several clients may hold an example."""

from pathlib import Path

import pytest

from discreet import api
from discreet.cli.main import run
from discreet.errors import InvalidInput, UnsoundCombination
from discreet.experiment.configuration import experiment_file
from discreet.experiment.loop import training_loop as running
from discreet.experiment.promise import budget_check
from discreet.privacy.ledger import Budget, Ledger
from discreet.privacy.release import Person, Relation, Unit, View

HEAD = """\
rounds = 3
model = { kind = "linear" }

[task]
kind = "csv"
path = "visits.csv"
client = "hospital"
label = "ill"
ranges = { age = { min = 0, max = 100 }, ill = { values = [0, 1] } }
test_fraction = 0.0
max_multiplicity = 2

"""
CLIENTS = """\
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
EXAMPLES = """\
[privacy]
unit = "example"
against = "server"
epsilon = 20.0
delta = 1e-3

[algorithm]
recipe = "pfl"
sampling_rate = 0.5
clip_norm = 0.5
learning_rate = 1.0
"""


def experiment(folder: Path, text: str) -> Path:
    rows = [f"{hospital},{20 + row},{row % 2}" for hospital in ("north", "south", "east") for row in range(4)]
    (folder / "visits.csv").write_text("\n".join(["hospital,age,ill", *rows]) + "\n")
    (folder / "experiment.toml").write_text(HEAD + text)
    return folder / "experiment.toml"


def ledger(folder: Path, unit: Unit, relation: Relation = "zero_out", view: View = "public") -> Path:
    path = folder / "ledger.jsonl"
    Ledger.create(path, [Budget(unit=unit, relation=relation, view=view, epsilon=500.0, delta=1e-3)], "filter")
    return path


def words(folder: Path, text: str, counted: Path) -> list[str]:
    where = ["--ledger", str(counted), "--out", str(folder / "out"), "--key-dir", str(folder / "keys")]
    return ["run", str(experiment(folder, text)), *where]


@pytest.mark.parametrize("relation", ["zero_out", "replace", "add_or_remove"])
def test_a_ledger_for_examples_refuses_a_run_that_protects_one_of_several_clients(
    relation: Relation, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    counted = ledger(tmp_path, "example", relation)
    before = counted.read_bytes()
    assert run(words(tmp_path, CLIENTS, counted)) == UnsoundCombination.exit_code
    said = " ".join(capsys.readouterr().err.split())
    assert "a budget for one example against the public, and this experiment protects one client" in said
    assert "up to 2 clients may hold the same example" in said
    assert counted.read_bytes() == before
    assert not (tmp_path / "out").exists()


def test_a_ledger_for_clients_takes_it(tmp_path: Path):
    counted = ledger(tmp_path, "client")
    assert run(words(tmp_path, CLIENTS, counted)) == 0
    assert Ledger.open(counted).summary()["budgets"][0]["spent"] > 0


def test_a_ledger_for_examples_takes_it_where_each_lies_in_one_client(tmp_path: Path):
    counted = ledger(tmp_path, "example")
    asked = words(tmp_path, CLIENTS, counted)
    assert run([*asked, "--set", "task.max_multiplicity=1"]) == 0


@pytest.mark.parametrize("view", ["server", "public"])
def test_a_ledger_for_examples_takes_a_run_that_protects_examples(view: View, tmp_path: Path):
    counted = ledger(tmp_path, "example", view=view)
    assert run(words(tmp_path, EXAMPLES, counted)) == 0


def test_a_stopped_run_is_not_resumed_into_such_a_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Such a run was started before this was checked."""
    counted = ledger(tmp_path, "example")

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(budget_check, "check_overlap", lambda *_: None)
        broken.setattr("discreet.experiment.run_directory.run_record.RunRecord.append_round", die)
        run(words(tmp_path, CLIENTS, counted))
    before = counted.read_bytes()
    job, record = api.reopen_run(tmp_path / "out", tmp_path / "keys")
    with pytest.raises(UnsoundCombination, match="up to 2 clients may hold the same example"):
        running.resume(job, record, tmp_path / "keys", lambda _: None)
    assert counted.read_bytes() == before


def test_a_budget_for_a_person_is_refused_alike(tmp_path: Path):
    job = api.prepare_job(experiment_file.load_experiment(experiment(tmp_path, CLIENTS), ()))
    budget = Budget(
        unit=Person(column="patient", at_most=2), relation="zero_out", view="public", epsilon=9.0, delta=1e-3
    )
    with pytest.raises(InvalidInput, match="a budget for one person"):
        budget_check.check_overlap([budget], job.algorithm, job.population, "The ledger")
