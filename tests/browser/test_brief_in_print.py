"""The brief prints on one sheet of A4, whatever the run is and however much it has to say."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from discreet.experiment.run_directory.run_data import RunData, read_run
from discreet.privacy.card_lines import Line
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.release import Person
from discreet.report import brief_page
from tests.report.conftest import certified_guarantee, open_run, run  # noqa: F401 - fixtures
from tests.report.test_brief import card, with_cards

pytestmark = pytest.mark.browser
A4 = (595, 842)  # points
LONG = "The columns were scaled by what somebody read in the data before, and this sentence is quite long. " * 2
SIMULATED = Line(
    "The run is simulated: one process plays every client and holds all data, and the noise comes from torch's "
    "generator, which is not a cryptographic source. Nothing is protected from someone who controls that machine.",
    "machine",
)


def crowd_run(folder: Path) -> RunData:
    """A run with as much to say as one can have: long names, warnings, many guarantees and long exclusions."""
    person = Person(column="patient_number_of_the_ward", at_most=20)
    excluded = [Line(f"{number}. {LONG}", "method") for number in range(9)]
    made: list[Guarantee] = [
        replace(
            card(person, view, SIMULATED, on_word_of=[f"mine.py:Loud (sha256 {'0a' * 32})"], not_covered=excluded),
            clients=tuple(range(0, 40, 3)),
        )
        for view in ("client", "server", "public")
    ]
    read = with_cards(folder, *made, *made, identity={"data_ranges": True})
    return replace(read, name="a_run_whose_name_is_longer_than_most_names_of_runs_are_2026-11-18")


@pytest.mark.parametrize("kind", ["certified", "none", "seeded", "public", "crowded"])
def test_it_is_one_sheet(browser: Any, request: Any, tmp_path: Path, kind: str):
    folder = request.getfixturevalue("open_run" if kind == "none" else "run")
    made = read_run(folder)
    if kind == "crowded":
        made = crowd_run(folder)
    elif kind == "seeded":
        made = replace(made, outcome=made.outcome | {"seeded": True})
    path = tmp_path / "brief.html"
    path.write_text(brief_page.render_page(made, public=kind == "public"), encoding="utf-8")
    opened = browser.new_page()
    opened.goto(path.as_uri())
    printed = opened.pdf(prefer_css_page_size=True)
    opened.close()
    assert len(re.findall(rb"/Type\s*/Page\b(?!s)", printed)) == 1
    (box,) = re.findall(rb"/MediaBox\s*\[\s*0 0 ([\d.]+) ([\d.]+)\s*\]", printed)
    assert tuple(round(float(side)) for side in box) == A4
