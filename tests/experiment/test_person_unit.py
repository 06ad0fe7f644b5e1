"""A promise for one person needs data that names persons, each with few rows in few clients."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import discreet
from discreet import api
from discreet.cli.main import run
from discreet.errors import InvalidInput, UnsoundCombination
from discreet.experiment.configuration import experiment_file
from discreet.experiment.job import Job
from discreet.experiment.loop import run_guarantees
from discreet.experiment.promise.promise import promise_event
from discreet.privacy.events import GaussianNoise, PoissonSampledGroup, steps
from discreet.privacy.ledger import Budget, Ledger
from discreet.privacy.release import Person, Unit

EXPERIMENT = """\
rounds = 2
model = { kind = "linear" }

[task]
kind = "csv"
path = "visits.csv"
client = "hospital"
label = "ill"
ranges = { age = { min = 0, max = 100 }, patient = "ignore", ill = { values = [0, 1] } }
test_fraction = 0.0

[privacy]
unit = { kind = "person", column = "patient", at_most = 2 }
against = "server"
epsilon = 20.0
delta = 1e-3

[algorithm]
recipe = "pfl"
noise_multiplier = 2.0
sampling_rate = 0.5
clip_norm = 0.5
learning_rate = 1.0
"""
# Ann has four rows in the north and one in the south; Bob and Cy have one or two rows each.
VISITS = [
    ("north", "ann", 10, 0),
    ("north", "bob", 20, 1),
    ("south", "cy", 30, 0),
    ("north", "ann", 40, 1),
    ("south", "ann", 50, 0),
    ("north", "ann", 60, 1),
    ("south", "cy", 70, 1),
    ("north", "ann", 80, 0),
]
ARRAYS: dict[str, Any] = {
    "inputs": torch.randn(20, 3),
    "targets": torch.arange(20) % 2,
    "sizes": [10, 10],
    "classes": 2,
}
PATIENT = Person(column="patient", at_most=2)
PFL: dict[str, Any] = {"noise_multiplier": 2.0, "sampling_rate": 0.5, "clip_norm": 0.5, "learning_rate": 1.0}


def experiment(folder: Path, text: str = EXPERIMENT) -> Path:
    rows = [",".join(map(str, row)) for row in VISITS]
    (folder / "visits.csv").write_text("\n".join(["hospital,patient,age,ill", *rows]) + "\n")
    (folder / "experiment.toml").write_text(text)
    return folder / "experiment.toml"


def prepare(folder: Path, *overrides: str, text: str = EXPERIMENT) -> Job:
    return api.prepare_job(experiment_file.load_experiment(experiment(folder, text), overrides))


def privacy(unit: Any = PATIENT) -> discreet.Privacy:
    return discreet.Privacy(unit=unit, against="server", epsilon=20.0, delta=1e-3)


@pytest.mark.parametrize("command", ["plan", "run", "compare"])
def test_a_person_column_that_does_not_exist_is_refused(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    file = experiment(tmp_path, EXPERIMENT.replace('"patient", at', '"pateint", at'))
    assert run([command, str(file)]) == InvalidInput.exit_code
    said = " ".join(capsys.readouterr().err.split())
    assert "has no column 'pateint' for the person" in said
    assert "Its columns: hospital, patient, age, ill." in said
    assert not (tmp_path / "runs").exists()


def test_a_task_without_columns_is_refused(tmp_path: Path):
    with pytest.raises(InvalidInput, match="named by column 'patient', and the task 'digits' has no such column"):
        prepare(tmp_path, "task={kind='digits', clients=3}")


def test_arrays_that_name_no_persons_are_refused(tmp_path: Path):
    task = discreet.clients_from_arrays(**ARRAYS)
    with pytest.raises(InvalidInput, match="whose rows are not bounded by column 'patient'"):
        discreet.train(
            torch.nn.Linear(3, 2),
            task,
            rounds=1,
            algorithm=discreet.pfl(**PFL),
            privacy=privacy(),
            out=tmp_path / "out",
            key_dir=tmp_path,
        )
    assert not (tmp_path / "out").exists()


def test_the_rows_that_are_trained_on_are_few_of_each_person_and_in_one_client(tmp_path: Path):
    """Ann's rows at ages 10 and 40 are used: her first two, in the client of her first row."""
    task = prepare(tmp_path).task
    assert (task.client_names, task.train.sizes) == (("north", "south"), (3, 2))
    ages = [round((value + 1) * 50) for value in task.train.inputs[:, 0].tolist()]
    assert ages == [10, 20, 40, 30, 70]
    assert task.rows_left_out == 3


def test_the_card_says_the_rule_and_keeps_the_number_of_rows_left_out_to_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    out = tmp_path / "out"
    assert run(["run", str(experiment(tmp_path)), "--out", str(out), "--key-dir", str(tmp_path / "keys")]) == 0
    told = capsys.readouterr()
    assert "3 rows are left out" in " ".join(told.err.split())
    written = " ".join((out / "guarantee.txt").read_text().split())
    assert "at most 2 rows are used, the first in the table's order" in written
    assert "How many rows were left out" in written
    assert "3 rows" not in written
    assert "3 rows were left out" in " ".join((out / "report.html").read_text().split())
    assert run(["report", str(out), "--public"]) == 0
    assert "3 rows" not in (out / "report-public.html").read_text()


def test_only_the_person_is_certified_where_rows_are_left_out(tmp_path: Path):
    """Removing one example may bring in another row of the same person, so nothing is certified for one example."""
    cards = run_guarantees.certify_run(prepare(tmp_path).terms, 2, None, shared=False)
    assert [each.unit for each in cards] == [PATIENT]


def test_the_plan_says_that_rows_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["plan", str(experiment(tmp_path))]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "2 clients with 5 examples" in said
    assert "3 rows are left out" in said


CENTRAL = "algorithm={recipe='dp_fedavg', noise_multiplier=3.0, epochs=1, batch_size=2, clip_norm=1, learning_rate=0.1}"
IN_TWO = "privacy.unit={kind='person', column='patient', at_most=2, clients_at_most=2}"


def test_with_two_clients_declared_the_first_rows_of_each_client_are_used(tmp_path: Path):
    """Ann's rows at ages 10 and 40 in the north and 50 in the south are used."""
    task = prepare(tmp_path, IN_TWO).task
    ages = [round((value + 1) * 50) for value in task.train.inputs[:, 0].tolist()]
    assert (ages, task.train.sizes, task.rows_left_out) == ([10, 20, 40, 30, 50, 70], (3, 3), 2)


def promised_event(job: Job) -> dict[Any, int]:
    assert job.privacy is not None
    return steps(promise_event(job.privacy, job.algorithm, job.rounds, job.population).event)


def test_where_clients_add_noise_the_uploads_of_two_clients_are_composed(tmp_path: Path):
    alone, twice = promised_event(prepare(tmp_path)), promised_event(prepare(tmp_path, IN_TWO))
    sampled = PoissonSampledGroup(sampling_rate=0.5, group_size=2, event=GaussianNoise(noise_multiplier=2.0))
    assert (alone, twice) == ({sampled: 2}, {sampled: 4})


def test_where_a_sum_is_noisy_the_rows_of_both_clients_are_one_group(tmp_path: Path):
    shares = ("algorithm.recipe='ddp_fedavg'", "algorithm.noise='gaussian'", "privacy.against='public'")
    sampled = PoissonSampledGroup(sampling_rate=0.5, group_size=4, event=GaussianNoise(noise_multiplier=2.0))
    assert promised_event(prepare(tmp_path, IN_TWO, *shares)) == {sampled: 2}


def test_noise_for_whole_clients_is_counted_for_two_of_them(tmp_path: Path):
    """An update moves the sum by 1 of the clip, and replacing two of them by 4: half the noise, under replace."""
    job = prepare(tmp_path, IN_TWO, CENTRAL, "privacy.against='public'")
    assert job.privacy is not None
    about = promise_event(job.privacy, job.algorithm, 2, job.population)
    assert (steps(about.event), about.relation) == ({GaussianNoise(noise_multiplier=1.5): 2}, "replace")


def test_a_person_in_more_clients_than_declared_stops_a_simulation(tmp_path: Path):
    file = experiment(tmp_path)
    with (tmp_path / "visits.csv").open("a") as table:
        table.write("east,ann,20,1\n")
    with pytest.raises(InvalidInput, match="are in more than 2 clients, and clients_at_most = 2 was declared"):
        api.prepare_job(experiment_file.load_experiment(file, [IN_TWO]))


def test_clients_that_protect_differently_can_not_share_a_person(tmp_path: Path):
    with pytest.raises(UnsoundCombination, match="2 clients may hold rows of one person, and they protect it differ"):
        prepare(tmp_path, IN_TWO, "privacy.epsilon=[20.0, 10.0]")


def test_clients_that_take_turns_can_not_share_a_person(tmp_path: Path):
    turns = "algorithm.sampling={kind='round_robin', cohort=1}"
    with pytest.raises(UnsoundCombination, match="Clients take turns, and up to 2 clients may hold rows of one person"):
        prepare(tmp_path, IN_TWO, CENTRAL, turns, "privacy.against='public'")


def test_the_card_of_a_person_in_two_clients_says_so(tmp_path: Path):
    (card,) = run_guarantees.certify_run(prepare(tmp_path, IN_TWO).terms, 2, None, shared=False)
    written = " ".join(card.as_text().split())
    assert "at most 2 in each of at most 2 clients" in written
    assert "No person has rows in more than 2 clients, which was checked." in written
    (alone,) = run_guarantees.certify_run(prepare(tmp_path).terms, 2, None, shared=False)
    assert card.epsilon > alone.epsilon


@pytest.mark.parametrize(
    ("unit", "promised", "sentence"),
    [
        (Person(column="patient", at_most=2), "example", "one person (column 'patient', at most 2 rows)"),
        (Person(column="patient", at_most=1), None, "one person (column 'patient', at most 1 row)"),
        (Person(column="name", at_most=2), None, "one person (column 'name', at most 2 rows)"),
        ("example", None, "may bring another in"),
        (
            Person(column="patient", at_most=2),
            "{kind='person', column='patient', at_most=2, clients_at_most=2}",
            "one person (column 'patient', at most 2 rows)",
        ),
    ],
    ids=["a promise for an example", "fewer rows", "another column", "a budget for an example", "more clients"],
)
def test_a_ledger_that_counts_for_another_unit_refuses_the_run(
    unit: Unit, promised: str | None, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    budget = Budget(unit=unit, relation="zero_out", view="server", epsilon=500.0, delta=1e-3)
    Ledger.create(tmp_path / "ledger.jsonl", [budget])
    change = [] if promised is None else ["--set", f"privacy.unit={promised}"]
    words = ["run", str(experiment(tmp_path)), "--ledger", str(tmp_path / "ledger.jsonl")]
    assert run([*words, *change, "--out", str(tmp_path / "out")]) == InvalidInput.exit_code
    assert sentence in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()
    assert Ledger.open(tmp_path / "ledger.jsonl").summary()["budgets"][0]["spent"] == 0


def test_a_ledger_for_the_same_person_is_charged(tmp_path: Path):
    unit = Person(column="patient", at_most=3)
    budget = Budget(unit=unit, relation="zero_out", view="server", epsilon=500.0, delta=1e-3)
    Ledger.create(tmp_path / "ledger.jsonl", [budget], "filter")
    words = ["run", str(experiment(tmp_path)), "--ledger", str(tmp_path / "ledger.jsonl"), "--json"]
    assert run([*words, "--out", str(tmp_path / "out"), "--key-dir", str(tmp_path / "keys")]) == 0
    assert Ledger.open(tmp_path / "ledger.jsonl").summary()["budgets"][0]["spent"] > 0


@pytest.mark.filterwarnings("ignore:(delta|epsilon) = ")
def test_a_table_from_python_bounds_the_person_that_is_promised(tmp_path: Path):
    experiment(tmp_path)
    named: dict[str, Any] = {"client": "hospital", "label": "ill", "test_fraction": 0.0}
    ranges = {"age": {"min": 0, "max": 100}, "ill": {"values": [0, 1]}}
    task = discreet.clients_from_csv(tmp_path / "visits.csv", **named, ranges=ranges, person=PATIENT)
    settings: dict[str, Any] = {"rounds": 1, "algorithm": discreet.pfl(**PFL), "key_dir": tmp_path}
    done = discreet.train(torch.nn.Linear(1, 2), task, privacy=privacy(), out=tmp_path / "out", **settings)
    assert done.guarantee is not None
    assert done.guarantee.unit == PATIENT
    assert json.loads((tmp_path / "out" / "guarantee.json").read_text())["rows_left_out"] == 3
    stricter = privacy(Person(column="patient", at_most=1))
    with pytest.raises(InvalidInput, match="at most 1 row"):
        discreet.train(torch.nn.Linear(1, 2), task, privacy=stricter, out=tmp_path / "less", **settings)
    with pytest.raises(InvalidInput, match="leaves out rows of persons"):
        discreet.train(torch.nn.Linear(1, 2), task, privacy=privacy("example"), out=tmp_path / "other", **settings)


def test_a_run_for_persons_is_resumed_and_loaded_on_the_same_rows(tmp_path: Path):
    """The model has one input, the age; the column that names persons is not an input."""
    file, keys = experiment(tmp_path), str(tmp_path / "keys")
    assert run(["run", str(file), "--out", str(tmp_path / "out"), "--key-dir", keys]) == 0
    assert discreet.load(tmp_path / "out").model(torch.zeros(1, 1)).shape == (1, 2)
