"""`discreet audit FILE --round`: attack one round of an algorithm on a toy task, and print what was measured."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import RenderableType
from rich.text import Text

from discreet.cli.output import emit
from discreet.cli.text_table import text_table
from discreet.errors import InvalidInput
from discreet.privacy.release import Unit, View
from discreet.privacy.wording import compact

if TYPE_CHECKING:
    from discreet.audit.round_tester import RoundTest
    from discreet.experiment.configuration.experiment_file import Experiment
    from discreet.trust import Trust

CONTRADICTED = 4  # exit code of a test that contradicts what is certified


def audit_round(
    file: Path,
    settings: list[str] | None,
    data_dir: Path | None,
    trust: "Trust",
    unit: str | None,
    against: View | None,
    repetitions: int,
    seed: int | None,
    *,
    as_json: bool,
) -> None:
    """Attack one round of the algorithm in an experiment's file, print the results, and exit with 4 on a violation.

    Raises:
        InvalidInput: The file is a run directory, or certifies nothing of the kind that was asked for.
    """
    from discreet.audit.round_tester import Effort, attack_round
    from discreet.audit.round_tester.round_attack import OPEN_NOISE
    from discreet.experiment.configuration import experiment_file

    if file.is_dir():
        raise InvalidInput(
            f"--round takes an experiment's file, and {file} is a run directory.",
            fix="Give the file that it was started from.",
        )
    source = experiment_file.load_experiment(file, tuple(settings or ()), data_dir, trust).load_user_parts()
    algorithm = source.experiment.algorithm
    assumed = None if algorithm.with_noise(OPEN_NOISE) == algorithm else OPEN_NOISE
    results = attack_round(
        algorithm,
        unit=_choose_unit(unit, source.experiment),
        view=against,
        effort=Effort(repetitions=repetitions, quick_repetitions=max(200, min(2000, repetitions // 20))),
        seed=seed,
    )
    alarm = any(result.violated for result in results)
    emit(
        lambda: {
            "file": str(file),
            "alarm": alarm,
            "assumed_noise_multiplier": assumed,
            "results": [result.as_json() for result in results],
        },
        lambda: _page(results, source.experiment, assumed),
        as_json=as_json,
    )
    if alarm:
        raise typer.Exit(CONTRADICTED)


def _choose_unit(name: str | None, experiment: "Experiment") -> Unit | None:
    if name != "person":
        return name  # type: ignore[return-value]
    person = None if experiment.privacy is None else experiment.privacy.person
    if person is None:
        raise InvalidInput(
            "A person's rows must be bounded by the promise, and this experiment promises nothing for persons.",
            fix='Promise for unit = { kind = "person", column = "patient", at_most = 20 }.',
        )
    return person


def _page(
    results: "Sequence[RoundTest]", experiment: "Experiment", assumed_noise: float | None
) -> Iterator[RenderableType]:
    yield _describe_noise(experiment, assumed_noise)
    for result in results:
        yield Text(str(result), style="bold red" if result.violated else "")
        table = text_table("", "", gap=2)
        table.add_row("  Neighbours", result.neighbours.describe())
        yield table
    yield "A claim that is not contradicted is not proved: other neighbours may be told apart better."


def _describe_noise(experiment: "Experiment", assumed: float | None) -> str:
    """Say which noise is tested, and why ε is not that of the experiment."""
    privacy, rounds = experiment.privacy, f"{experiment.rounds:,} round{'' if experiment.rounds == 1 else 's'}"
    promise = ""
    if privacy is not None:
        promise = f" (ε = {compact(privacy.largest_epsilon)} at δ = {compact(privacy.delta)})"
    if assumed is None:
        return (
            "Tested: one round of this algorithm on a toy task, with the noise of the file. ε below is that of one "
            f"round on few clients, not that of the experiment{promise}, which counts {rounds} and its own clients."
        )
    return (
        f"Tested: one round of this algorithm on a toy task, with a noise multiplier of {compact(assumed)}. ε below is "
        f"that of this round, not the promise of the experiment{promise}: the file leaves the noise open, and what "
        f"the promise needs follows from all {rounds} and the experiment's own clients."
    )
