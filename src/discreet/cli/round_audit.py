"""`discreet audit FILE --round`: attack one round of an algorithm on a toy task, and print what was measured."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import RenderableType
from rich.text import Text

from discreet.cli.output import emit
from discreet.errors import InvalidInput
from discreet.privacy.release import Unit, View

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
    from discreet.experiment.configuration import experiment_file

    if file.is_dir():
        raise InvalidInput(
            f"--round takes an experiment's file, and {file} is a run directory.",
            fix="Give the file that it was started from.",
        )
    source = experiment_file.load_experiment(file, tuple(settings or ()), data_dir, trust).load_user_parts()
    results = attack_round(
        source.experiment.algorithm,
        unit=_choose_unit(unit, source.experiment),
        view=against,
        effort=Effort(repetitions=repetitions, quick_repetitions=max(200, min(2000, repetitions // 20))),
        seed=seed,
    )
    alarm = any(result.violated for result in results)
    emit(
        lambda: {"file": str(file), "alarm": alarm, "results": [result.as_json() for result in results]},
        lambda: _page(results),
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


def _page(results: "Sequence[RoundTest]") -> Iterator[RenderableType]:
    for result in results:
        yield Text(str(result), style="bold red" if result.violated else "")
        yield f"  Neighbours  {result.neighbours.describe()}"
    yield "A claim that is not contradicted is not proved: other neighbours may be told apart better."
