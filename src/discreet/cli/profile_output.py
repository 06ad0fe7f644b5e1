"""What `discreet run --profile` prints: a table of phases, and what took most of the time."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType

from discreet.cli.text_table import text_table
from discreet.experiment.run_directory.run_files import PROFILE, RunFiles

if TYPE_CHECKING:
    from discreet.experiment.run_directory.run_profile import RunProfile


def profile_of_run(directory: Path) -> "RunProfile | None":
    """Return where the time of a run went. None if it was not measured."""
    from discreet.experiment.run_directory.run_profile import read_profile

    return read_profile(RunFiles(directory).json(PROFILE))


def profile_json(profile: "RunProfile | None") -> dict[str, Any]:
    """Return the profile as a part of the result of a run. Empty without one."""
    if profile is None:
        return {}
    phases = [part._asdict() | {"phase": part.phase.value} for part in profile.phases]
    found = {"rounds": profile.rounds, "median_seconds": profile.median, "first_seconds": profile.first}
    return {"profile": found | {"phases": phases, "largest": phases[0]["phase"], "advice": profile.describe()}}


def profile_page(profile: "RunProfile | None") -> Iterator[RenderableType]:
    """Yield the table of phases, and what took most of the time."""
    if profile is None:
        return
    from discreet.report.profile_section import COLUMNS, TITLE, describe_rounds, profile_rows

    yield ""
    table = text_table(TITLE, *COLUMNS[1:], right=COLUMNS[1:])
    for row in profile_rows(profile):
        table.add_row(*row)
    yield table
    yield ""
    yield profile.describe()
    if sentence := profile.describe_first_round():
        yield sentence
    yield f"{describe_rounds(profile)} {WHERE}"


WHERE = "More is in profile.json, profile.svg and report.html. Times may tell who took part: don't publish them."
