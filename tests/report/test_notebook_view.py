"""In a notebook a run is the top of its page: short, without scripts, and with every text escaped."""

import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from discreet import api
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.html_card import GOOD
from discreet.report import run_page
from discreet.report.notebook_view import render_run
from discreet.words import fill
from tests.report.conftest import certified_guarantee, open_run, run  # noqa: F401 - fixtures

ALLOWED = {"div", "p", "table", "tr", "th", "td", "details", "summary", "pre"}
STYLES = {"border", "border-left", "border-radius", "padding", "max-width", "line-height", "margin", "font-size"}
STYLES |= {"font-weight", "opacity", "border-collapse", "background", "text-align", "vertical-align", "white-space"}


class Elements(HTMLParser):
    """The elements of a piece of HTML; each must be closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: set[str] = set()
        self.styles: set[str] = set()
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.open.append(tag)
        self.attributes |= {name for name, _ in attrs}
        for name, value in attrs:
            if name == "style":
                self.styles |= {rule.partition(":")[0] for rule in str(value).split(";") if rule}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def notebook_run(folder: Path, **more: Any) -> api.Run:
    return api.Run(folder, 4, {"accuracy": 0.7}, (), **more)


def test_it_has_the_verdict_and_the_main_numbers_of_the_page(run: Path):  # noqa: F811
    shown = notebook_run(run)._repr_html_()
    assert shown is not None
    page, words = run_page.write(run).read_text(), Elements(shown).words
    for text in ("Any one example is protected", "ε certified", "71.2\u202f%", "not covered by the guarantee"):
        assert any(text.split()[0] in word for word in words)
        assert text in page
        assert text in shown
    assert len(shown) < 6_000


def test_it_says_where_the_whole_page_is(run: Path):  # noqa: F811
    assert f"discreet report {run}" in render_run(run)
    assert str(run_page.write(run)) in render_run(run)


def test_a_run_without_privacy_is_said_to_have_none(open_run: Path):  # noqa: F811
    assert "promised" in render_run(open_run)
    assert "#2e9e6b" not in render_run(open_run)  # the colour of a kept promise


def test_only_plain_elements_with_styles_of_their_own_are_used(run: Path, certified_guarantee: Guarantee):  # noqa: F811
    for shown in (render_run(run), certified_guarantee._repr_html_()):
        found = Elements(shown)
        assert set(found.names) <= ALLOWED
        assert found.attributes <= {"style", "scope"}  # no class, no id, no handler, nothing that loads
        assert found.styles <= STYLES
        assert not re.search(r"url\(|expression|javascript", shown)


def test_names_from_files_are_escaped(run: Path):  # noqa: F811
    folder = run.rename(run.with_name("<script>alert(1)<"))
    (folder / "resolved.toml").write_text((folder / "resolved.toml").read_text().replace("digits", "<img src=x>"))
    shown = render_run(folder)
    assert "<script" not in shown
    assert "<img" not in shown
    assert "&lt;img src=x&gt;" in shown


def test_a_card_has_its_sentence_its_entries_and_all_the_rest_behind_them(certified_guarantee: Guarantee):  # noqa: F811
    shown = certified_guarantee._repr_html_()
    text = "".join(Elements(shown).words)
    assert certified_guarantee.sentence() in text
    assert certified_guarantee.as_text() in text
    assert shown.index(certified_guarantee.sentence()) < shown.index("<details")


def test_a_card_whose_noise_came_from_a_seed_or_that_bounds_nothing_is_not_green(
    certified_guarantee: Guarantee,  # noqa: F811
):
    assert GOOD in certified_guarantee._repr_html_()
    assumptions = (*certified_guarantee.assumptions, fill("assumes.seeded"))
    seeded = replace(certified_guarantee, assumptions=assumptions, assumption_sources=())
    above, _, folded = seeded._repr_html_().partition("<details>")
    assert GOOD not in above + folded
    assert "This run protects nobody" in above
    assert GOOD not in replace(certified_guarantee, epsilon=math.inf, mu=math.inf)._repr_html_()


def test_a_directory_that_is_gone_leaves_the_plain_form(tmp_path: Path):
    assert notebook_run(tmp_path / "gone")._repr_html_() is None


@pytest.mark.parametrize("name", ["rounds.jsonl", "guarantee.json"])
def test_a_file_that_cannot_be_read_raises_nothing(run: Path, name: str):  # noqa: F811
    (run / name).write_text("{")
    assert notebook_run(run)._repr_html_()
