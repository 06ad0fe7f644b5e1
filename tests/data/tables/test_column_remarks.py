"""`discreet data check` remarks on dates, decimal commas, identifiers, infinities, copies and clients of one row."""

from pathlib import Path

import pytest

from discreet.data.tables.file_reader import open_csv
from discreet.data.tables.table_survey import survey_table


def notes_on(tmp_path: Path, column: list[str], clients: str = "ab") -> list[str]:
    rows = [f'{clients[row % len(clients)]},"{cell}",{row % 2},{row / 7}' for row, cell in enumerate(column)]
    (tmp_path / "t.csv").write_text("\n".join(["who,x,y,z", *rows]) + "\n")
    survey = survey_table(open_csv(tmp_path / "t.csv"), client="who", label="y")
    return [note for note in survey.notes if "--write-ranges" not in note]


@pytest.mark.parametrize(
    ("cells", "remark"),
    [
        ([f"2026-01-{day:02}" for day in range(1, 29)], "holds dates: give it { first = DATE, last = DATE } with"),
        ([f"{day}.3.2026" for day in range(1, 29)], "holds dates: write them as YYYY-MM-DD, then give it"),
        ([f"2026-01-{day:02}T10:15:00" for day in range(1, 29)], "holds dates"),
        ([f"{row},5" for row in range(20)], "numbers with a decimal comma: write them with a decimal point"),
        ([f"1.{row:03},25" for row in range(20)], "decimal comma"),
        ([f"P{row:04}" for row in range(60)], "another value in every row, as an identifier has"),
        ([str(1000 + row) for row in range(60)], "another value in every row, as an identifier has"),
        ([*(["1"] * 20), "inf"], "is infinite in 1 row: replace that by the end of its public range"),
        (
            [*(f"word {row}" for row in range(60)), "word 1"],
            "is free text: { text_buckets = 64 } in the ranges",
        ),
        (["7"] * 20, "is constant here"),
    ],
)
def test_each_has_its_remark(cells: list[str], remark: str, tmp_path: Path) -> None:
    (note,) = [note for note in notes_on(tmp_path, cells) if "'x'" in note]
    assert remark in note


@pytest.mark.parametrize("cells", [[f"{row / 3:.4f}" for row in range(60)], ["1", "2", "3"] * 20, ["no", "yes"] * 30])
def test_measurements_and_categories_need_none(cells: list[str], tmp_path: Path) -> None:
    assert notes_on(tmp_path, cells) == []


def test_clients_of_one_row_and_copies_are_counted(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("who,x,y\na,1.5,0\na,1.5,0\na,2.5,1\nb,1.5,1\nc,2.5,0\n")
    notes = " ".join(survey_table(open_csv(tmp_path / "t.csv"), client="who", label="y").notes)
    assert "2 clients have one row only" in notes
    assert "1 row is a copy of another row" in notes
