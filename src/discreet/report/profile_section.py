"""Where the time of a round went, as a section of the owner's page and as rows of a table."""

from collections.abc import Iterator

from discreet.experiment.run_directory.run_profile import PhaseTime, RunProfile
from discreet.report.chart_figures import render_chart
from discreet.report.curves import Curve, Panel, Point
from discreet.report.markup import Html, table, tag
from discreet.report.number_format import format_percent

COLUMNS = ("phase", "share", "median", "first round")
LEAST = 0.005  # of the time: smaller parts are in profile.json only
TITLE = "Where the time of a round went"


def share_panel(profile: RunProfile) -> Panel:
    """Return the phases as rows, the largest share first."""
    shown = shown_phases(profile)
    return Panel(
        title="Share of the time by phase",
        x_label="share of the time",
        y_label="",
        curves=(Curve("share", tuple(Point(at, part.share) for at, part in enumerate(shown))),),
        percent=True,
        from_zero=True,
        x_names=tuple((float(at), part.title) for at, part in enumerate(shown)),
        as_rows=True,
    )


def shown_phases(profile: RunProfile) -> list[PhaseTime]:
    """Return the phases that took enough time to be shown; always the largest."""
    return [part for part in profile.phases if part.share >= LEAST or part is profile.phases[0]]


def profile_rows(profile: RunProfile) -> Iterator[tuple[str, ...]]:
    """Yield a row of `COLUMNS` for each phase, and one for the whole round."""
    for part in shown_phases(profile):
        often = "" if part.rounds >= profile.rounds - 1 else f" ({part.rounds} rounds)"
        median, first = format_seconds(part.median) + often, format_seconds(part.first)
        yield part.title, format_percent(part.share), median, first
    yield "A round", format_percent(1.0), format_seconds(profile.median), format_seconds(profile.first)


def describe_rounds(profile: RunProfile) -> str:
    """Say of which rounds the shares and medians are."""
    if profile.rounds == 1:
        return "Shares are of the only round."
    return f"Shares and medians are of the {profile.rounds - 1:,} rounds after the first."


def profile_contents(profile: RunProfile) -> Iterator[Html]:
    """Yield what the section of a page holds."""
    for sentence in (profile.describe(), profile.describe_first_round(), describe_rounds(profile)):
        if sentence:
            yield tag("p", sentence)
    yield tag("div", render_chart(share_panel(profile), "profile", source="profile.json"), class_="charts")
    yield table("Seconds by phase", COLUMNS, profile_rows(profile), stacked=True, class_="numbers stack")
    yield tag("p", PRIVACY, class_="note")


PRIVACY = (
    "Times depend on who took part and on how much data they have, so they may tell who took part. No guarantee "
    "covers them, and the public version of this page leaves them out."
)


def format_seconds(seconds: float) -> str:
    """Write seconds with three digits, small ones in milliseconds."""
    if seconds >= 1:
        return f"{seconds:.3g} s"
    return f"{1000 * seconds:.3g} ms"
