"""Write a starter ranges.toml. Its form is right; its numbers come from the data and must be replaced."""

import tomllib
from pathlib import Path

import tomlkit
from tomlkit.items import Item

from discreet.data.tables.column_survey import MOST_VALUES, ColumnSurvey
from discreet.data.tables.ranges import Ranges, load_ranges
from discreet.data.tables.table_survey import Survey
from discreet.paths import write_new_file

HEAD = (
    "Ranges that scale the columns of a table.",
    "",
    "The values below were copied from the data, so they reveal something about it: the largest value",
    "is somebody's value. Replace each by public bounds (an age is in 0..120), list categories as the",
    "form defines them, then delete the line taken_from_data: while it is there, training refuses these",
    "ranges, unless it gets --accept-data-ranges.",
    'A column that training should not see is set to "ignore"; free text may be { text_buckets = 64 }.',
)


def starter_toml(survey: Survey) -> str:
    """Return the text of a starter file for the columns of a table."""
    document = tomlkit.document()
    for line in HEAD:
        document.add(tomlkit.comment(line))
    document.add(tomlkit.nl())
    document.add("taken_from_data", tomlkit.item(True).comment("delete once every bound below is publicly known"))
    columns = tomlkit.table()
    for column in survey.columns:
        columns.add(column.name, _describe_column(column, column.type == "number", column.names_persons))
    columns.add(survey.label.name, _describe_label(survey.label))
    document.add("columns", columns)
    return tomlkit.dumps(document)


def starter_ranges(survey: Survey) -> Ranges:
    """Return the ranges of the starter file, for looking at the data without training."""
    return load_ranges(tomllib.loads(starter_toml(survey)))


def write_starter(survey: Survey, path: Path) -> None:
    """Write the starter file. Never overwrite an existing file."""
    write_new_file(path, starter_toml(survey))


def _is_numeric_label(label: ColumnSurvey) -> bool:
    """Return whether the label is a number to predict: it has fractions, or too many values to be classes."""
    are_classes = label.distinct <= MOST_VALUES and all(
        float(value).is_integer() for value in label.seen if label.numbers
    )
    return label.type == "number" and not are_classes


def _describe_label(label: ColumnSurvey) -> Item:
    item = _describe_column(label, _is_numeric_label(label), names_persons=False)
    reason = item.trivia.comment.removeprefix("# ")
    return item.comment(f"the label, which must have a range: {reason}" if reason else "the label")


def _describe_column(column: ColumnSurvey, numeric: bool, names_persons: bool) -> Item:
    if column.type == "date" and column.kinds.first_day < column.kinds.last_day:
        days = tomlkit.inline_table()
        days.update({"first": column.kinds.first_day, "last": column.kinds.last_day})
        return days
    if reason := _reason_to_ignore(column, numeric, names_persons):
        return tomlkit.string("ignore").comment(reason)
    table = tomlkit.inline_table()
    if numeric:
        table.update({"min": column.low, "max": column.high if column.high > column.low else column.low + 1})
    else:
        whole = column.type == "number"
        values = sorted({int(float(value)) for value in column.seen}) if whole else sorted(column.seen)
        table.update({"values": values})
    return table


def _reason_to_ignore(column: ColumnSurvey, numeric: bool, names_persons: bool) -> str:
    """Return why the starter leaves a column out. Empty if it does not."""
    if column.type == "empty":
        return "it has no values"
    if column.kinds.have_decimal_commas:
        return "numbers with a decimal comma: write them with a decimal point, then give { min, max }"
    if column.kinds.are_dates and column.type == "text":
        return "dates: write them as YYYY-MM-DD, then give { first, last }"
    if names_persons:
        return "it probably names persons"
    if column.type == "text":
        return "free text"
    return "it has too many values for a category" if not numeric and column.distinct > MOST_VALUES else ""
