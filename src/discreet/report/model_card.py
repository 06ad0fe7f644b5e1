"""The model card of a run, in Markdown: what the model is, what it takes, what is guaranteed, and how to use it."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import Any

from discreet.code_version import CodeVersion, read_code_version
from discreet.experiment.metrics import CONSTANT, capitalize
from discreet.experiment.run_directory import run_files
from discreet.experiment.run_directory.run_data import RunData, read_run
from discreet.experiment.run_directory.run_files import RunFiles
from discreet.privacy import wording
from discreet.privacy.card_lines import group_lines
from discreet.privacy.guarantee import Guarantee, card_entries, split_by_largest_epsilon
from discreet.privacy.wording import per_thousand
from discreet.report import charts, page_sections
from discreet.report.guarantee_card import describe_onlooker, remove_numbers
from discreet.report.number_format import format_count
from discreet.report.public_paths import hide_run_folders
from discreet.report.verdict import judge
from discreet.words import fill

PYTHON = "python"  # the kind of a model or of data that a Python program passed
MOST_VALUES = 12  # listed values of a column that are written out


def render(run_dir: Path, *, public: bool = False) -> str:
    """Return the model card of a run. It names files without their folders.

    Args:
        run_dir: The run directory.
        public: Leave out every number that the guarantee does not cover.

    Guarantee: the public version contains no number computed from the data, except those that the guarantee covers.

    Raises:
        InvalidInput: There is no run in the directory.
    """
    return "\n".join(_lines(run_dir, public=public)).rstrip() + "\n"


def export_facts(run_dir: Path) -> dict[str, str]:
    """Return what an exported file says about itself, by name.

    No guarantee covers `columns` if the ranges were taken from the data; `guarantee` then has a warning.
    """
    run, table = hide_run_folders(read_run(run_dir)), _read_table(run_dir)
    facts = {"discreet": str(read_code_version()), "guarantee": " ".join(_verdict(run))}
    if isinstance(run.experiment.get("model"), dict):
        facts["model"] = json.dumps(run.experiment["model"], ensure_ascii=False)
    if table is not None:
        facts["columns"] = json.dumps(table, ensure_ascii=False)
    return facts


def _lines(run_dir: Path, *, public: bool) -> Iterator[str]:
    run, table = hide_run_folders(read_run(run_dir)), _read_table(run_dir)
    yield from (f"# Model card: {run.name}", "", *_verdict(run), "")
    if run.warning and not public:
        yield from (run.warning, "")
    yield from ("## The model", "", *_describe_model(run), "")
    yield from ("## Training data", "", *_describe_task(run), "")
    yield from ("## Inputs and outputs", "")
    hidden = public and run.has_data_ranges
    yield from (*(_describe_inputs(run) if table is None else _describe_columns(table, hidden=hidden)), "")
    cards, others = split_by_largest_epsilon(run.guarantees)
    yield from ("## The guarantee", "")
    for card in cards:
        yield from _describe_guarantee(card, public=public)
    if not cards:
        yield from (fill("card.no_privacy") if run.promise is None else fill("verdict.uncertified"), "")
    if others:
        yield from (f"{format_count(len(others), 'more guarantees')} of single clients: see the report of the run.", "")
    if not public and (metrics := list(_describe_metrics(run))):
        yield from (f"## Metrics, {page_sections.NOT_COVERED}", "", *metrics, "")
    yield from ("## How to use it", "", *_describe_use(run_dir, is_table=table is not None))


def _verdict(run: RunData) -> Iterator[str]:
    verdict = judge(run)
    yield " ".join((verdict.sentence, *verdict.more))


def _read_table(run_dir: Path) -> dict[str, Any] | None:
    files = RunFiles(run_dir)
    table: dict[str, Any] | None = files.json(run_files.TABLE)
    files.require()
    return table


def _describe_model(run: RunData) -> Iterator[str]:
    settings = run.value("model")
    settings = settings if isinstance(settings, dict) else {}
    if settings.get("kind") in (None, PYTHON):
        yield f"- Network: the module `{settings.get('name', 'unknown')}`, which a Python program passed"
    else:
        options = ", ".join(f"{key} = {value}" for key, value in settings.items() if key != "kind" and value)
        yield f"- Network: `{settings['kind']}`" + (f" ({options})" if options else "")
    recipe = f" by {run.recipe}" if run.recipe else ""
    yield f"- Trained{recipe} in {format_count(len(run.rounds), 'rounds')}"
    if version := run.environment.get("discreet"):
        yield f"- Made by: {CodeVersion(version, run.environment.get('commit'), run.environment.get('dirty'))}"


def _describe_task(run: RunData) -> Iterator[str]:
    """List the settings of the task, which are public; what the card assumes of the data is with the guarantee."""
    settings = run.value("task")
    for name, value in (settings if isinstance(settings, dict) else {}).items():
        if isinstance(value, str | int | float) and value != PYTHON:
            yield f"- {name} = {json.dumps(value, ensure_ascii=False)}"


def _describe_inputs(run: RunData) -> Iterator[str]:
    task = run.value("task", "name") or run.value("task", "kind") or "data"
    yield f"Inputs are as the task `{task}` gives them; outputs are as the loss takes them (for classes, logits)."


def _describe_columns(table: dict[str, Any], *, hidden: bool) -> Iterator[str]:
    yield from ("| column | what it takes |", "|---|---|")
    for name, column in table["inputs"].items():
        yield f"| {_cell(name)} | {_cell(_describe_column(column, hidden=hidden))} |"
    target = table["target"]
    what = "the probability of each value" if "values" in target else "a number in the label's own units"
    yield from ("", f"It predicts `{table['label']}`, {_describe_column(target, hidden=hidden)}: {what}.")


def _describe_column(column: dict[str, Any], *, hidden: bool) -> str:
    """Describe a column by its public range; one that was taken from the data may be hidden."""
    if "values" in column:
        values = column["values"]
        if hidden:
            return "a listed value (the list was taken from the data)"
        more = f", … ({len(values)} values)" if len(values) > MOST_VALUES else ""
        return "one of " + ", ".join(values[:MOST_VALUES]) + more
    if "text_buckets" in column:
        return f"free text, whose words are counted in {column['text_buckets']} buckets"
    if "first" in column:
        return "a date" if hidden else f"a date from {column['first']} to {column['last']}"
    return "a number" if hidden else f"a number from {column['min']:g} to {column['max']:g}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _describe_guarantee(card: Guarantee, *, public: bool) -> Iterator[str]:
    heading = fill(f"heading.{wording.unit_name(card.unit)}", against=describe_onlooker(card.view))
    yield from (f"### {heading}", "", *((fill("card.seeded"), "") if card.is_seeded else ()), card.sentence(), "")
    alarms, recognised, guessing = fill("attack.allowed_alarms"), fill("attack.recognised"), fill("attack.guessing")
    yield from (fill("attack.title") + ":", "", f"| {alarms} | {recognised} | {guessing} |", "|---|---|---|")
    for attack in card.attacks:
        false = per_thousand(attack.false_positive_rate)
        yield f"| {false} | {per_thousand(attack.true_positive_rate)} | {false} |"
    yield ""
    for label, text in card_entries(card):
        yield f"- {label}: {text}"
    not_covered = [remove_numbers(sentence) for sentence in card.not_covered] if public else card.not_covered
    for title, sentences in (
        *group_lines("assumes", card.assumptions, card.assumption_sources),
        *group_lines("not_covered", not_covered, card.exclusion_sources),
    ):
        if sentences:
            yield from ("", f"{title}:", "", *(f"- {sentence}" for sentence in sentences))
    yield ""


def _describe_metrics(run: RunData) -> Iterator[str]:
    """List the last value of each metric on test data, which was measured without noise."""
    metrics = run.outcome.get("metrics")
    for name, value in (metrics if isinstance(metrics, dict) else {}).items():
        number = run_files.json_number(value)
        if number is not None and math.isfinite(number) and name != CONSTANT:
            yield f"- {capitalize(name)} on test data: {charts.format_metric(name, number)}"


def _describe_use(run_dir: Path, *, is_table: bool) -> Iterator[str]:
    shown = Path(run_dir.name) if run_dir.is_absolute() else run_dir
    run = quote(str(shown))
    yield "```sh"
    if is_table:
        yield f"discreet predict {run} new.csv --out predictions.csv"
    yield f"discreet export {run} --to onnx"
    yield from ("```", "", "```python", "import discreet", "", f"run = discreet.load({str(shown)!r})")
    yield from ("run.predict(frame)" if is_table else "run.model(inputs)", "```")
