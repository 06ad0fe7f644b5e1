"""The brief of a run as a page that prints on one sheet of A4: brief.html, written from the run directory alone."""

from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path

from discreet.experiment.run_directory.run_data import RunData, read_run
from discreet.privacy.card_lines import Line
from discreet.report.attack_picture import attack_pictures
from discreet.report.brief import Brief, write_brief
from discreet.report.markup import Html, bullet_list, join, tag
from discreet.report.run_page import NAME as REPORT
from discreet.report.run_page import PUBLIC_NAME as PUBLIC_REPORT
from discreet.report.run_page import html_page, write_atomically
from discreet.words import fill

NAME = "brief.html"
PUBLIC_NAME = "brief-public.html"


def write(run_dir: Path, *, public: bool = False, out: Path | None = None, report: str | None = None) -> Path:
    """Write the brief of a run as a page, and return its path.

    Args:
        run_dir: The run directory.
        public: Leave out every number that the guarantee does not cover.
        out: The file to write. None writes brief.html or brief-public.html into the run directory.
        report: Name of the full report in the same folder, which the page links to. None: as `run_page.write` names it.

    Raises:
        InvalidInput: If there is no run in the directory, or the file can't be written.
    """
    run_dir = Path(run_dir)
    path = out if out is not None else run_dir / (PUBLIC_NAME if public else NAME)
    return write_atomically(path, render_page(read_run(run_dir), public=public, report=report))


def render_page(run: RunData, *, public: bool = False, report: str | None = None) -> str:
    """Return the brief as HTML. It links to the full report beside it, by its name."""
    brief = write_brief(run, public=public)
    style = files("discreet.report").joinpath("brief.css").read_text(encoding="utf-8")
    body = join(_body(brief, report or (PUBLIC_REPORT if public else REPORT), public=public))
    return html_page(fill("brief.title"), join([tag("style", Html(style)), body]))


def _body(brief: Brief, report: str, *, public: bool) -> Iterator[Html]:
    eyebrow = f"{brief.heading} · {fill('brief.public')}" if public else brief.heading
    verdict = dict.fromkeys((brief.verdict.sentence, *brief.verdict.more, *brief.warnings))  # each sentence once
    yield tag(
        "header",
        tag("p", eyebrow, class_="eyebrow"),
        tag("h1", fill("brief.title")),
        tag("div", *(tag("p", sentence) for sentence in verdict), class_=f"verdict {brief.verdict.mood}", role="note"),
        class_="brief",
    )
    yield tag(
        "main",
        tag(
            "div",
            _section("protected", *map(_paragraph, brief.protected)),
            _section("onlooker", *map(_paragraph, brief.onlooker)),
            class_="facts",
        ),
        _section("strength", *map(_paragraph, brief.strength), *_picture(brief)),
        tag(
            "div",
            _section("data", tag("p", brief.data), *_quality(brief)),
            _section("period", *map(_paragraph, brief.period)),
            class_="facts",
        ),
        _section("checks", _checks(brief), *(tag("p", note, class_="note") for note in brief.notes)),
        _section("not_covered", bullet_list(brief.not_covered)) if brief.not_covered else None,
        _section("others", bullet_list(brief.others)) if brief.others else None,
        _section("signatures", _signatures(brief)),
        class_="brief",
    )
    yield tag("footer", tag("p", *_footer(brief, report)), class_="brief")


def _section(name: str, *children: Html | None) -> Html:
    return tag("section", tag("h2", fill(f"brief.{name}")), *children, class_=f"part {name.replace('_', '-')}")


def _paragraph(sentence: str) -> Html:
    return tag("p", sentence)


def _picture(brief: Brief) -> Iterable[Html]:
    return [attack_pictures(brief.attacks)] if brief.attacks else []


def _quality(brief: Brief) -> Iterable[Html]:
    return [tag("p", brief.quality, class_="note")] if brief.quality else []


def _checks(brief: Brief) -> Html:
    """List what must be checked, each with one line for a mark, and in it a paragraph for everyone who must check."""
    blank = tag("span", fill("brief.check_label"), " ", tag("i", class_="blank"), class_="mark")
    return tag("ol", *(tag("li", *_paragraphs(lines, blank)) for lines in brief.checks))


def _paragraphs(lines: Sequence[Line], end: Html) -> Iterator[Html]:
    for number, line in enumerate(lines, start=1):
        mark = (" ", end) if number == len(lines) else ()
        yield tag("p", tag("strong", fill(f"who.{line.source}")), ": ", str(line), *mark)


def _signatures(brief: Brief) -> Html:
    """Return a table with a row to sign for each who must check something, and for the officer."""
    checked_by = (fill(f"who.{line.source}") for lines in brief.checks for line in lines)
    roles = [*dict.fromkeys(checked_by), fill("brief.officer")]
    names = ("role", "name", "date", "signature")
    head = tag("tr", *(tag("th", fill(f"brief.{name}"), scope="col") for name in names))
    rows = (tag("tr", tag("th", role, scope="row"), *(tag("td") for _ in names[1:])) for role in roles)
    return tag("table", tag("thead", head), tag("tbody", *rows), class_="signatures")


def _footer(brief: Brief, report: str) -> Iterator[Html | str]:
    card = brief.guarantee
    yield tag("a", fill("brief.full_card"), href=report)
    yield f": {report}."
    if card is not None:
        yield " " + fill("brief.made_by", code=str(card.code))
    if card is not None and card.ledger is not None:
        mark = fill("card.ledger", entries=f"{card.ledger.length:,}", head=card.ledger.head)
        yield " " + fill("brief.ledger", ledger=mark)
