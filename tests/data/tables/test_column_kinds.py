"""Dates and free text become inputs in [-1, 1] by public knowledge alone, each row by itself."""

import math
import tomllib
import zlib
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.data.tables.column_kinds import DateRange, HashedText, Range, hash_words
from discreet.data.tables.file_reader import open_csv
from discreet.data.tables.ranges import load_ranges
from discreet.data.tables.starter_ranges import starter_toml
from discreet.data.tables.table_columns import TableColumns, table_from_columns
from discreet.data.tables.table_survey import survey_table
from discreet.data.tables.table_task import clients_from_csv
from discreet.errors import InvalidInput

YEAR = DateRange(first="2021-01-01", last="2021-12-31")  # 364 days apart
ROWS = "who,day,note,ill\na,2021-01-01,fever and pain,no\nb,2021-07-02T10:15,no fever,yes\na,2021-12-31,,yes\n"
RANGES = {
    "day": {"first": "2021-01-01", "last": "2021-12-31"},
    "note": {"text_buckets": 8},
    "ill": {"values": ["no", "yes"]},
}


@pytest.mark.parametrize(
    ("cell", "scaled"),
    [
        ("2021-01-01", -1),
        ("2021-07-02", 0),
        ("2021-12-31", 1),
        ("2021-01-02", 2 / 364 - 1),
        ("2021-07-02T23:59:59", 0),  # the time of day is not used
        ("2021-07-02 00:00:00", 0),
        ("1950-03-04", -1),  # outside the range: moved to its end
        ("2099-01-01", 1),
    ],
)
def test_a_date_is_scaled_by_its_days(cell: str, scaled: float) -> None:
    numbers, is_unreadable = YEAR.read_cells([cell])
    assert (numbers[0], is_unreadable[0]) == (pytest.approx(scaled), False)


@pytest.mark.parametrize("cell", ["", "2021", "2021-02-30", "02.07.2021", "7/2/2021", "20210702", "NaT", "soon"])
def test_other_spellings_of_a_date_are_not_guessed(cell: str) -> None:
    assert YEAR.read_cells([cell])[1].tolist() == [True]


def test_dates_of_a_data_frame_are_read_in_any_unit() -> None:
    columns = TableColumns(inputs={"day": YEAR}, label="y", target=Range(min=0, max=1))
    days = ["2021-01-01", "2021-07-02"]
    for frame in (days, np.array(days, dtype="datetime64[ns]"), [date.fromisoformat(day) for day in days]):
        assert next(columns.encode(table_from_columns({"day": frame}))).tolist() == [[-1], [0]]
    with pytest.raises(InvalidInput, match="Row 1, column 'day' must be a date as YYYY-MM-DD, and got 'NaT'"):
        next(columns.encode(table_from_columns({"day": np.array(["NaT"], dtype="datetime64[D]")})))


@pytest.mark.parametrize(
    ("column", "problem"),
    [
        ({"first": "2021-12-31", "last": "2021-01-01"}, "needs first before last"),
        ({"first": "31.12.2021", "last": "2022-01-01"}, "must be a date such as 2026-01-31"),
        ({"first": "2021-01-01"}, "must be { min = …, max = … }, "),
        ({"text_buckets": 0}, "text_buckets"),
        ({"text_buckets": "many"}, "text_buckets"),
    ],
)
def test_a_range_that_makes_no_sense_is_refused(column: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        load_ranges({"x": column})


def test_dates_of_toml_are_dates_too() -> None:
    read = load_ranges(tomllib.loads("[columns]\nday = { first = 2021-01-01, last = 2021-12-31 }"))
    assert read.columns["day"] == YEAR


@given(st.text(), st.integers(1, 300))
def test_a_text_has_a_norm_of_one_or_no_words(text: str, buckets: int) -> None:
    (counts,) = hash_words([text], buckets)
    assert counts.shape == (buckets,)
    assert (counts >= 0).all()
    norm = math.sqrt(float((counts**2).sum()))
    assert norm == pytest.approx(1) or (norm == 0 and not any(letter.isalnum() for letter in text))


def test_a_word_is_counted_in_the_bucket_of_its_crc() -> None:
    (counts,) = hash_words(["Fever, FEVER; pain"], 1000)
    fever, pain = (zlib.crc32(word) % 1000 for word in (b"fever", b"pain"))
    assert counts[fever] == pytest.approx(2 / math.sqrt(5))
    assert counts[pain] == pytest.approx(1 / math.sqrt(5))
    assert np.count_nonzero(counts) == 2


def test_a_row_is_encoded_without_a_look_at_others() -> None:
    texts = ["fever and pain", "", "pain " * 500, "Übelkeit"]
    together = HashedText(text_buckets=16).read_cells(texts)[0]
    alone = np.concatenate([HashedText(text_buckets=16).read_cells([text])[0] for text in texts])
    assert together.tolist() == alone.tolist()


def test_a_task_has_dates_and_texts_as_inputs_and_standardises_dates_alone(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(ROWS)
    task = clients_from_csv(tmp_path / "t.csv", client="who", label="ill", ranges=RANGES, test_fraction=0)
    assert task.train.inputs.shape == (3, 9)
    assert task.train.inputs[:, 0].tolist() == [-1, 1, 0]  # of client a, then of client b
    assert task.standardisation is not None
    assert task.standardisation.numeric == (0,)
    facts = " ".join(task.facts)
    assert "Dates become numbers of days" in facts
    assert "no vocabulary was fitted" in facts


def test_the_check_accepts_them_counts_dates_outside_and_remarks_nothing(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(ROWS + "b,2030-01-01,no,no\n")
    survey = survey_table(open_csv(tmp_path / "t.csv"), client="who", label="ill", ranges=load_ranges(RANGES))
    assert survey.is_readable
    assert [column.outside for column in survey.columns] == [1, 0]
    assert not [note for note in survey.notes if "'day'" in note or "'note'" in note]
    (tmp_path / "t.csv").write_text(ROWS.replace("2021-12-31", "31.12.2021"))
    survey = survey_table(open_csv(tmp_path / "t.csv"), client="who", label="ill", ranges=load_ranges(RANGES))
    assert survey.problems[0].startswith("Line 4, column 'day' must be a date as YYYY-MM-DD, and got '31.12.2021'.")


def test_the_starter_has_the_first_and_the_last_date(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(ROWS)
    survey = survey_table(open_csv(tmp_path / "t.csv"), client="who", label="ill")
    assert 'day = {first = "2021-01-01", last = "2021-12-31"}' in starter_toml(survey)
