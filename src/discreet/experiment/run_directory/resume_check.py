"""Whether a run may be resumed here: only with the version, the data and the code that it was started with.

Another commit of the same version may resume it if no line of the package's source differs; the card then names both.

The noise of a run is a function of its key. With other data, the same noise would be added to other numbers, and
would cancel in their difference; with other code, other noise might be drawn for a round that was counted once.
"""

import json
from pathlib import Path
from typing import Any

from discreet.code_version import CodeVersion, read_code_version
from discreet.errors import InvalidInput
from discreet.experiment.configuration import toml_document
from discreet.experiment.job import Job
from discreet.experiment.run_directory.fingerprint import (
    MODEL_TABLES,
    Fingerprint,
    own_files,
    take_fingerprint,
    versions,
)
from discreet.experiment.run_directory.run_record import RunRecord
from discreet.privacy.wording import join_words

ANEW = "start a new run, which spends its budget anew"
CANCELS = "its noise would be added to other numbers too, and cancel in their difference."
MIXED = "this changes no sum, but the records of its rounds would follow two settings, and its files name one."
SUMLESS = {"evaluate_every", "evaluate_training", "checkpoint_every", "track"}  # settings that change no sum
NAMED = 3  # settings that a message names
REASONS = {
    "experiment": "another experiment",
    "agreement": "another membership of its clients, or other keys of theirs",
    "training_data": "other training data",
    "public_data": "other public data",
    "test_data": "other test data",
    "validation_data": "other validation data",
    "model": "another model (its layers, its code or its frozen weights)",
    "own_code": "another loss, metric or Python file of its own",
    "source": "another source code of discreet ({before}; this is {now})",
    "device": "another kind of device (CPU or GPU)",
    "first_weights": "other first weights of its model",
}


def check_version(record: RunRecord) -> Fingerprint:
    """Return the fingerprint of a run that this version started. Refuse other runs before more of them is read."""
    before, now = record.identity.fingerprint, versions()
    if before is None:
        raise InvalidInput(
            f"The run in {record.path} was started by another version of discreet ({_starting_version(record)}), which "
            f"kept no fingerprint of data and code that this one ({read_code_version().version}) could compare, so it "
            "can't go on here.",
            fix=f"Go on with the version that started it, or {ANEW}.",
        )
    if (started := before.versions.get("discreet")) != now["discreet"]:
        raise InvalidInput(
            f"The run in {record.path} was started by discreet {started}, and this is discreet {now['discreet']}: a "
            "run goes on only with the version that started it.",
            fix=f"Go on with discreet {started}, or {ANEW}.",
        )
    for name, version in now.items():
        if (started := before.versions.get(name)) != version:
            raise InvalidInput(
                f"The run in {record.path} was started with {name} {started}, and here is {name} {version}, which may "
                "draw other noise and round differently.",
                fix=f"Go on with {name} {started}, or {ANEW}.",
            )
    return before


def check_unchanged(job: Job, record: RunRecord) -> None:
    """Refuse a run whose experiment, data or code is not what it was started with, before anything is written."""
    before, now = check_version(record), take_fingerprint(job)
    if before.key != now.key:
        raise InvalidInput(
            f"The run in {record.path} was started with another seed or key, and can't go on with this one.",
            fix=f"Restore it, or {ANEW}.",
        )
    changed = [name for name in REASONS if getattr(before, name) != getattr(now, name)]
    if record.has_checkpoint() and "first_weights" in changed:
        changed.remove("first_weights")  # the weights of the checkpoint are used
    if changed:
        code = {"before": _starting_code(record), "now": read_code_version()}
        reasons = {name: REASONS[name].format(**code) for name in changed}
        settings = _changed_settings(job, record) if "experiment" in changed else {}
        if settings:
            reasons["experiment"] += f" ({_name_settings(settings)})"
        is_harmless = changed == ["experiment"] and settings and settings.keys() <= SUMLESS
        raise InvalidInput(
            f"The run in {record.path} was started with {join_words(list(reasons.values()))}, and can't go on with "
            f"what is here now: {MIXED if is_harmless else CANCELS}",
            fix=f"Restore what it was started with, or {ANEW}.",
        )


def _changed_settings(job: Job, record: RunRecord) -> dict[str, tuple[str, str]]:
    """Return the settings that differ, by their names: each before and now. Empty if resolved.toml was changed."""
    text = record.read_text("resolved.toml")
    before, now = (_flatten(toml_document.parse_toml(each, "resolved.toml"), "") for each in (text, job.resolved_text))
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    if not job.settings.engine.is_simulated:
        names = [name for name in names if not name.startswith("engine")]  # as in the fingerprint
    return {name: (before.get(name, "not set"), now.get(name, "not set")) for name in names}


def _flatten(table: Any, name: str) -> dict[str, str]:
    """Return the values of nested tables as text, by names such as `algorithm.trainer.learning_rate`."""
    if not isinstance(table, dict):
        return {name: json.dumps(table, default=str)}
    parts = (_flatten(value, f"{name}.{key}" if name else key) for key, value in table.items())
    return {key: value for part in parts for key, value in part.items()}


def _name_settings(settings: dict[str, tuple[str, str]]) -> str:
    named = [f"{name}: {before}, now {now}" for name, (before, now) in list(settings.items())[:NAMED]]
    more = len(settings) - len(named)
    return "; ".join(named) + (f"; and {more} more" if more else "")


def check_model_files(record: RunRecord) -> None:
    """Refuse to build a model by other code than the run was trained with: its outputs would be another model's."""
    folder, resolved = record.identity.folder, record.read_text("resolved.toml")
    here = own_files(None if folder is None else Path(folder), resolved, MODEL_TABLES)
    trained = {line.rpartition(" ")[0]: line for line in record.identity.model_files}
    changed = [name for line in here if trained.get(name := line.rpartition(" ")[0], line) != line]
    if changed:
        raise InvalidInput(
            f"{changed[0].removeprefix('file ')} has changed since the run in {record.path} was trained, so it may "
            "build another model.",
            fix="Restore the file, or pass the module that was trained: discreet.load(directory, module=...).",
        )


def _starting_code(record: RunRecord) -> CodeVersion:
    stamp = record.identity.code
    return CodeVersion(_starting_version(record)) if stamp is None else CodeVersion.from_stamp(stamp)


def _starting_version(record: RunRecord) -> str:
    try:
        return str(json.loads(record.read_text("environment.json"))["discreet"])
    except (InvalidInput, ValueError, KeyError, TypeError):
        return "unknown"
