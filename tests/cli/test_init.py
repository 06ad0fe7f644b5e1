"""`discreet init`: the file that it writes can be run."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.experiment.configuration import experiment_file
from tests.cli.conftest import Discreet

HEADER = "hospital,age,ward,readmitted\n"
RANGES = """\
[columns]
age = { min = 0, max = 100 }
ward = { values = ["a", "b"] }
readmitted = { values = ["no", "yes"] }
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def test_the_starter_is_the_built_in_experiment_with_comments(discreet: Discreet, folder: Path):
    ran = discreet("init")
    assert (ran.code, ran.err) == (0, "")
    assert "discreet run experiment.toml" in ran.out
    assert (
        experiment_file.load_experiment(folder / "experiment.toml").experiment
        == experiment_file.load_experiment().experiment
    )
    assert "# the promise" in (folder / "experiment.toml").read_text()


def test_a_table_of_ones_own_runs_from_init_to_model(discreet: Discreet, folder: Path):
    rows = [f"h{i % 3},{i % 90},{'ab'[i % 2]},{'no' if i % 90 < 45 else 'yes'}\n" for i in range(360)]
    (folder / "data").mkdir()
    (folder / "data" / "visits.csv").write_text(HEADER + "".join(rows))
    assert discreet("init visits.toml --table data/visits.csv --client hospital --label readmitted").code == 0
    assert discreet("run visits.toml --out result").code == 2  # the ranges are still missing
    (folder / "ranges.toml").write_text(RANGES)
    found = discreet("run visits.toml --out result --set privacy.epsilon=8 --set privacy.delta=1e-3 --json")
    assert found.code == 0
    assert found.json["metrics"]["accuracy"] > 0.8


def test_a_parquet_table_runs_too(discreet: Discreet, folder: Path):
    pq.write_table(
        pa.table(
            {
                "hospital": [f"h{i % 3}" for i in range(360)],
                "age": [i % 90 for i in range(360)],
                "ward": ["ab"[i % 2] for i in range(360)],
                "readmitted": ["no" if i % 90 < 45 else "yes" for i in range(360)],
            }
        ),
        folder / "visits.parquet",
    )
    (folder / "ranges.toml").write_text(RANGES)
    assert discreet("init visits.toml --table visits.parquet --client hospital --label readmitted").code == 0
    assert 'kind = "parquet"' in (folder / "visits.toml").read_text()
    found = discreet("run visits.toml --out result --set privacy.epsilon=8 --set privacy.delta=1e-3 --json")
    assert found.code == 0
    assert found.json["metrics"]["accuracy"] > 0.8


def test_an_editor_finds_the_schema_beside_the_file(discreet: Discreet, folder: Path):
    assert discreet("init").code == 0
    assert (folder / "experiment.toml").read_text().startswith("#:schema ./experiment.schema.json\n")
    assert json.loads((folder / "experiment.schema.json").read_text()) == discreet("schema --json").json
    assert discreet("schema").out == (folder / "experiment.schema.json").read_text()


def test_only_an_older_schema_is_replaced(discreet: Discreet, folder: Path):
    old = folder / "old.json"
    old.write_text('{"title": "An experiment of Discreet"}')
    assert discreet(f"schema --out {old}").code == 0
    assert old.read_text() == discreet("schema").out
    old.write_text("mine")
    assert "is not overwritten" in discreet(f"schema --out {old}").err
    assert old.read_text() == "mine"


def test_a_file_that_is_there_is_left_as_it_is(discreet: Discreet, folder: Path):
    (folder / "experiment.toml").write_text("mine")
    ran = discreet("init")
    assert ran.code == 2
    assert "is not overwritten" in ran.err
    assert (folder / "experiment.toml").read_text() == "mine"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--table gone.csv --client a --label b", "no file gone.csv"),
        ("--table visits.csv --client hopsital --label readmitted", "Its columns: hospital, age, ward, readmitted"),
        ("--table visits.csv --client hospital", "--label is missing"),
        ("--client hospital", "Name it with --table"),
    ],
)
def test_a_column_that_is_not_there_is_refused(line: str, said: str, discreet: Discreet, folder: Path):
    (folder / "visits.csv").write_text(HEADER)
    ran = discreet(f"init {line}")
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert not (folder / "experiment.toml").exists()


def test_rows_that_a_promise_for_a_person_leaves_out_change_no_setting(discreet: Discreet, folder: Path):
    """How many there are is not public."""
    rows = [f"{hospital},{hospital}{row},{row},yes" for hospital in "abc" for row in range(9)]
    texts = []
    for name, more in (("few", 0), ("many", 500)):
        lines = ["hospital,patient,age,readmitted", *rows, *["a,a0,50,no"] * more]
        (folder / "visits.csv").write_text("\n".join(lines) + "\n")
        options = ("--table", "visits.csv", "--client", "hospital", "--label", "readmitted")
        assert discreet("init", f"{name}.toml", *options, "--unit", "person:patient:1").code == 0
        texts.append((folder / f"{name}.toml").read_text())
    assert texts[0] == texts[1]
    assert "27 rows" in texts[0]
