"""An error stays one readable sentence, whatever it has to name."""

import pytest

from discreet.cli.main import run
from discreet.errors import InvalidInput, nearest_names
from discreet.part import Count, check_value
from discreet.paths import to_path
from discreet.validation_errors import describe_value

COLUMNS = [f"measured_value_{number}" for number in range(200)]


def test_few_names_are_all_listed():
    assert nearest_names(["age", "sex"], "agee") == "age, sex"


def test_of_many_names_the_nearest_are_listed_and_the_others_counted():
    listed = nearest_names([*COLUMNS, "readmitted"], "readmited")
    assert listed.startswith("readmitted, ")
    assert listed.endswith(" and 196 others")
    assert listed.count(",") == 4


@pytest.mark.parametrize("length", [10, 400, 401, 100_000])
def test_a_word_that_nobody_reads_to_its_end_is_shortened(length: int):
    said = str(InvalidInput(f"It is {'a' * length}."))
    assert len(said) <= 410
    assert (len(said) == length + 7) == (length < 400)


class _Hostile:
    def __repr__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (3, "3"),
        ("a\nb", "'a\\nb'"),
        ([1] * 100, "[" + "1, " * 19 + "1,…"),
        (10**5000, "a number of thousands of digits"),
        (_Hostile(), "an object of the class _Hostile"),
    ],
    ids=["a number", "a text", "a list", "a huge number", "an object that can't be shown"],
)
def test_a_value_is_shown_in_one_short_line(value: object, shown: str):
    assert describe_value(value) == shown


def test_an_argument_is_refused_by_its_name():
    with pytest.raises(InvalidInput, match=r"^runs must be a whole number, and got 'x'"):
        check_value("runs", Count, "x")


@pytest.mark.parametrize("path", ["\0", "\udcff", "x" * 256, "a/" + "ε" * 200, b"x", 3, None])
def test_a_path_that_no_file_can_have_is_refused(path: object):
    with pytest.raises(InvalidInput, match=r"path must"):
        to_path(path)  # type: ignore[arg-type]


def test_an_error_of_a_file_names_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def fail(*_: object) -> None:
        raise PermissionError(13, "Permission denied", "there")

    monkeypatch.setattr("discreet.cli.main._dispatch", fail)
    assert run(["plan"]) == 1
    assert capsys.readouterr().err == (
        "Error: there could not be read or written (Permission denied). Check who may use it, and whether its disk has "
        "room.\n"
    )
