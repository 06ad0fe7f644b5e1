"""Where the time of a round went, as a picture: what `discreet run --profile` writes beside its table."""

from pathlib import Path

from discreet.experiment.run_directory.run_files import PROFILE, PROFILE_PICTURE, RunFiles
from discreet.experiment.run_directory.run_profile import RunProfile, read_profile
from discreet.extras import is_installed
from discreet.report.curves import Picture
from discreet.report.picture_files import save_picture
from discreet.report.profile_section import TITLE, describe_rounds, share_panel


def draw_run(run_dir: Path) -> RunProfile | None:
    """Draw the profile of a run into its directory, and return it. None if its time was not measured."""
    profile = read_profile(RunFiles(run_dir).json(PROFILE))
    if profile is not None and is_installed("matplotlib"):
        save_picture(draw_profile(profile), run_dir / PROFILE_PICTURE)
    return profile


def draw_profile(profile: RunProfile) -> Picture:
    """Return the picture: each phase with its share of the time."""
    first = profile.describe_first_round()
    notes = (profile.describe(), describe_rounds(profile), *([first] if first else []))
    return Picture(title=TITLE, panels=(share_panel(profile),), notes=notes)
