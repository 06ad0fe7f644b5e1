"""Few rows of each person are used, in few clients, independently of the other persons in the table."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.data.tables.person_rows import PersonRows
from discreet.data.tables.table_task import clients_from_csv, clients_from_parquet
from discreet.data.tasks.task import Task
from discreet.errors import InvalidInput
from discreet.privacy.release import Person

HEADER = "hospital,patient,age,ill\n"
RANGES: dict[str, Any] = {"age": {"min": 0, "max": 100}, "ill": {"values": ["no", "yes"]}}

rows = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("NSE")), max_size=30)  # (person, client)


def choose_rows(table: list[tuple[str, str]], most: int, clients: int = 1) -> list[bool]:
    chosen = PersonRows(Person(column="patient", at_most=most, clients_at_most=clients))
    return [chosen.uses(person, client) for person, client in table]


@given(rows, st.integers(1, 4))
def test_nobody_has_more_rows_than_allowed_or_rows_in_two_clients(table: list[tuple[str, str]], most: int):
    kept = [row for row, use in zip(table, choose_rows(table, most), strict=True) if use]
    for person in {person for person, _ in table}:
        clients = [client for each, client in kept if each == person]
        assert 1 <= len(clients) <= most
        assert len(set(clients)) == 1


@given(rows, st.integers(1, 4))
def test_with_several_clients_the_first_rows_of_each_client_are_used(table: list[tuple[str, str]], most: int):
    """There are three clients, so that nobody can be in more of them than is declared here."""
    kept = [row for row, use in zip(table, choose_rows(table, most, clients=3), strict=True) if use]
    assert {row: kept.count(row) for row in set(table)} == {row: min(most, table.count(row)) for row in set(table)}


def test_a_person_in_more_clients_than_was_declared_is_refused():
    two = [("a", "N"), ("a", "S"), ("b", "E"), ("a", "N")]
    assert choose_rows(two, 1, clients=2) == [True, True, True, False]
    with pytest.raises(
        InvalidInput, match="are in more than 2 clients, and clients_at_most = 2 was declared"
    ) as refused:
        choose_rows([*two, ("a", "E")], 1, clients=2)
    assert "Declare as many clients" in (refused.value.fix or "")


@given(rows, rows, st.integers(1, 4), st.sampled_from([1, 3]))
def test_one_persons_rows_never_change_which_rows_of_others_are_used(
    table: list[tuple[str, str]], other: list[tuple[str, str]], most: int, clients: int
):
    """Person a is removed, or added again with any other rows, before and after all others."""
    others = [row for row in table if row[0] != "a"]
    instead = [("a", client) for _, client in other]
    expected = choose_rows(others, most, clients)
    assert [use for row, use in zip(table, choose_rows(table, most, clients), strict=True) if row[0] != "a"] == expected
    half = len(instead) // 2
    changed = [*instead[:half], *others, *instead[half:]]
    assert [
        use for row, use in zip(changed, choose_rows(changed, most, clients), strict=True) if row[0] != "a"
    ] == expected


def load(tmp_path: Path, text: str, most: int = 1, ranges: Any = RANGES, **named: Any) -> Task:
    path = tmp_path / "visits.csv"
    path.write_text(HEADER + text)
    columns = {"client": "hospital", "label": "ill", "test_fraction": 0.0, **named}
    return clients_from_csv(path, ranges=ranges, person=Person(column="patient", at_most=most), **columns)


def test_the_column_that_names_persons_is_no_input(tmp_path: Path):
    text = "N,1,50,no\nN,2,100,yes\n"
    for ranges in (RANGES, {**RANGES, "patient": "ignore"}):
        assert load(tmp_path, text, ranges=ranges).train.inputs.tolist() == [[0], [1]]
    with pytest.raises(InvalidInput, match="'patient' names persons, and the ranges make it an input"):
        load(tmp_path, text, ranges={**RANGES, "patient": {"min": 0, "max": 9}})


def test_the_label_names_nobody(tmp_path: Path):
    with pytest.raises(InvalidInput, match="'patient' can't be both the label and the person"):
        load(tmp_path, "N,1,50,no\n", label="patient", ranges={**RANGES, "patient": {"values": [1, 2]}})


def test_a_client_may_be_the_person(tmp_path: Path):
    task = load(
        tmp_path, "N,1,50,no\nN,1,60,no\nN,2,70,no\n", client="patient", ranges={**RANGES, "hospital": "ignore"}
    )
    assert (task.client_names, task.train.sizes) == (("1", "2"), (1, 1))


@pytest.mark.parametrize("cell", ["", "NA", "?"])
def test_a_row_that_names_no_person_is_refused(cell: str, tmp_path: Path):
    with pytest.raises(InvalidInput, match="Line 3, column 'patient' must name a person"):
        load(tmp_path, f"N,1,50,no\nN,{cell},50,no\n")


def test_a_client_that_has_no_row_left_is_refused(tmp_path: Path):
    with pytest.raises(InvalidInput, match="client 'S' has no row left"):
        load(tmp_path, "N,1,50,no\nS,1,50,no\n")


def test_persons_of_a_parquet_file_may_be_named_by_numbers(tmp_path: Path):
    columns = {"hospital": ["N", "N", "S"], "patient": [7, 7, 7], "age": [0, 50, 100], "ill": ["no", "no", "yes"]}
    pq.write_table(pa.table(columns), tmp_path / "visits.parquet")
    named: dict[str, Any] = {"client": "hospital", "label": "ill", "ranges": RANGES, "test_fraction": 0.0}
    with pytest.raises(InvalidInput, match="client 'S' has no row left"):
        clients_from_parquet(tmp_path / "visits.parquet", **named, person=Person(column="patient", at_most=2))
    pq.write_table(pa.table({**columns, "hospital": ["N", "N", "N"]}), tmp_path / "visits.parquet")
    task = clients_from_parquet(tmp_path / "visits.parquet", **named, person=Person(column="patient", at_most=2))
    assert task.train.inputs.tolist() == [[-1], [0]]


def test_rows_are_left_out_before_some_are_held_out(tmp_path: Path):
    """Four of ten rows of each person are used, whichever side the person is on."""
    text = "".join(f"N,{person},{age},no\n" for person in range(20) for age in range(10))
    task = load(tmp_path, text, most=4, test_fraction=0.25)
    assert task.train.sizes[0] + len(task.test_inputs) == 80
    assert task.train.sizes[0] % 4 == len(task.test_inputs) % 4 == 0
    assert task.rows_left_out == 120
    assert max(task.train.inputs.max(), task.test_inputs.max()) < 4 / 50 - 1
