"""A person is on one side of every split, with all rows in all clients, by a rule that looks at the name alone."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.data.tables.person_sides import split_persons
from discreet.data.tables.table_task import TableTask, clients_from_csv
from discreet.errors import InvalidInput
from discreet.lazy_torch import torch
from discreet.paths import Paths
from discreet.privacy.release import Person

NAMES = [f"patient {number}" for number in range(2000)]
shares = st.tuples(st.floats(0, 0.9), st.floats(0, 0.9))
tables = st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 3)), min_size=1, max_size=60)


def sides_of(rows: list[tuple[str, int]], shares: tuple[float, ...]) -> list[int]:
    persons, clients = zip(*rows, strict=True)
    return split_persons(persons, np.array(clients), shares).tolist()


@given(tables, shares)
def test_all_rows_of_a_person_are_on_one_side_and_every_client_trains(
    rows: list[tuple[str, int]], shares: tuple[float, float]
):
    sides = sides_of(rows, shares)
    assert len(set(zip((person for person, _ in rows), sides, strict=True))) == len({person for person, _ in rows})
    assert {client for (_, client), side in zip(rows, sides, strict=True) if side == 0} == {
        client for _, client in rows
    }


def test_the_shares_are_shares_of_persons():
    sides = sides_of([(name, 0) for name in NAMES], (0.2, 0.25))
    assert sides.count(1) / 2000 == pytest.approx(0.2, abs=0.03)
    assert sides.count(2) / 2000 == pytest.approx(0.8 * 0.25, abs=0.03)


@given(tables, shares, st.integers(0, 1999))
def test_other_persons_change_nothing(rows: list[tuple[str, int]], shares: tuple[float, float], other: int):
    """Every client has somebody who trains in any case, so that no client is left with nothing."""
    everybody = [(name, 0) for name in NAMES]
    last = NAMES[sides_of(everybody, (0.995,)).index(0)]
    rows = [*((last, client) for client in range(4)), *(row for row in rows if row[0] != NAMES[other])]
    assert sides_of([*rows, (NAMES[other], 0)], shares) == [*sides_of(rows, shares), sides_of(everybody, shares)[other]]


def test_no_share_holds_out_nobody():
    assert set(sides_of([(name, 0) for name in NAMES], (0.0, 0.0))) == {0}


RANGES: dict[str, Any] = {"age": {"min": 0, "max": 200}, "ill": {"values": ["no", "yes"]}}
COLUMNS: dict[str, Any] = {"client": "hospital", "label": "ill", "ranges": RANGES}
PATIENT = Person(column="patient", at_most=3, clients_at_most=2)


def write_table(path: Path) -> Path:
    """Write a table of 100 patients, each with two rows in each of two hospitals; the age is the patient's number."""
    rows = [f"{hospital},{patient},{patient},no\n" for _ in range(2) for patient in range(100) for hospital in "NS"]
    path.write_text("hospital,patient,age,ill\n" + "".join(rows))
    return path


def patients(inputs: torch.Tensor) -> set[int]:
    return {round((float(value) + 1) * 100) for value in inputs[:, 0]}


def test_training_test_and_validation_rows_of_a_table_are_of_different_persons(tmp_path: Path):
    path = write_table(tmp_path / "visits.csv")
    held_out: dict[str, Any] = {"test_fraction": 0.3, "validation_fraction": 0.3}
    task = clients_from_csv(path, **COLUMNS, **held_out, person=PATIENT)
    assert task.validation is not None
    sides = [patients(task.train.inputs), patients(task.test_inputs), patients(task.validation[0])]
    assert set.union(*sides) == set(range(100))
    assert sum(map(len, sides)) == 100
    assert task.train.sizes == (2 * len(sides[0]), 2 * len(sides[0]))
    assert any("with all their rows" in fact for fact in task.facts)
    population, data = TableTask(kind="csv", path=str(path), **COLUMNS, **held_out).describe(Paths.default(), PATIENT)
    assert population.examples == task.train.sizes
    assert data.facts == task.facts


def test_the_split_of_persons_is_the_same_in_every_run(tmp_path: Path):
    path = write_table(tmp_path / "visits.csv")
    drawn = (torch.Generator().manual_seed(seed) for seed in range(2))
    tasks = [clients_from_csv(path, **COLUMNS, person=PATIENT, generator=generator) for generator in drawn]
    assert patients(tasks[0].test_inputs) == patients(tasks[1].test_inputs)


def test_validation_rows_that_nobody_has_are_refused(tmp_path: Path):
    path = tmp_path / "visits.csv"
    path.write_text("hospital,patient,age,ill\nN,1,50,no\nN,1,60,yes\n")
    with pytest.raises(InvalidInput, match="holds out no"):
        clients_from_csv(path, **COLUMNS, person=PATIENT, test_fraction=0.0, validation_fraction=0.5)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (["north,eve,50,1"], None),
        (
            ["north,eve,50,1", "south,cy,60,0"],
            "A person must be in one of visits.csv and held.csv, and the one in line 3",
        ),
        (["north,,50,1"], "must name a person"),
    ],
)
def test_nobody_is_in_the_table_and_in_the_file_of_validation_rows(tmp_path: Path, rows: list[str], words: str | None):
    training = [
        f"{'north' if row % 2 else 'south'},{['ann', 'bob', 'cy'][row % 3]},{row},{row % 2}" for row in range(9)
    ]
    head = "hospital,patient,age,ill"
    (tmp_path / "visits.csv").write_text("\n".join([head, *training]) + "\n")
    (tmp_path / "held.csv").write_text("\n".join([head, *rows]) + "\n")
    arguments: dict[str, Any] = {
        "client": "hospital",
        "label": "ill",
        "ranges": {"age": {"min": 0, "max": 100}, "ill": {"values": [0, 1]}},
        "test_fraction": 0.0,
        "validation_path": tmp_path / "held.csv",
        "person": Person(column="patient", at_most=9, clients_at_most=2),
    }
    if words is None:
        task = clients_from_csv(tmp_path / "visits.csv", **arguments)
        assert task.validation is not None
        assert len(task.validation[1]) == 1
        assert any("no person of the table has rows there" in fact for fact in task.facts)
        return
    with pytest.raises(InvalidInput, match=words):
        clients_from_csv(tmp_path / "visits.csv", **arguments)


def test_a_file_of_validation_rows_must_name_persons_too(tmp_path: Path):
    (tmp_path / "visits.csv").write_text("hospital,patient,age,ill\nnorth,ann,50,0\nnorth,bob,60,1\n")
    (tmp_path / "held.csv").write_text("age,ill\n50,1\n")
    ranges = {"age": {"min": 0, "max": 100}, "ill": {"values": [0, 1]}}
    with pytest.raises(InvalidInput, match=r"held\.csv must have the column 'patient'"):
        clients_from_csv(
            tmp_path / "visits.csv",
            client="hospital",
            label="ill",
            ranges=ranges,
            test_fraction=0.0,
            validation_path=tmp_path / "held.csv",
            person=Person(column="patient", at_most=2),
        )
