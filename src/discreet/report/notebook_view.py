"""A run as a piece of HTML for notebooks: the top of its page, with styles inside its elements and no scripts."""

from pathlib import Path

from discreet.experiment.run_directory.run_data import read_run
from discreet.privacy.html_card import BAD, GOOD, html_box, html_paragraph, html_table
from discreet.report import page_sections
from discreet.report.run_page import NAME
from discreet.report.verdict import judge

COLOURS = {"good": GOOD, "bad": BAD, "none": "#8a949d"}
SMALL = "font-size:.85em;opacity:.8;"


def render_run(directory: Path) -> str:
    """Return title, verdict and main numbers of a run, from its directory, and where the whole page is.

    Raises:
        InvalidInput: There is no run in the directory.
    """
    run = read_run(directory)
    verdict = judge(run)
    notes = [*verdict.more, *(note for note in (run.stop_reason, run.warning) if note)]
    page = directory / NAME
    return html_box(
        COLOURS[verdict.mood],
        html_paragraph(f"Training report · {run.name}", SMALL),
        html_paragraph(page_sections.title(run), "font-size:1.15em;font-weight:600;"),
        html_paragraph(verdict.sentence, "font-weight:600;"),
        *(html_paragraph(note) for note in notes),
        html_table([*page_sections.covered_tiles(run), *page_sections.uncovered_tiles(run)]),
        html_paragraph(f"All of it: {page}" if page.is_file() else f"All of it: discreet report {directory}", SMALL),
    )
