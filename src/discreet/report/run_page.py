"""The page of a run: report.html, written from the run directory alone, in one file that loads nothing."""

import os
from collections.abc import Iterator
from contextlib import suppress
from importlib.resources import files
from pathlib import Path

from discreet.errors import InvalidInput
from discreet.experiment.run_directory.run_data import RunData, read_run
from discreet.report import page_sections
from discreet.report.markup import Html, definition_list, html_document, join, tag
from discreet.report.public_paths import hide_run_folders
from discreet.report.verdict import judge

NAME = "report.html"
PUBLIC_NAME = "report-public.html"  # a name of its own, so that nobody shares the wrong file

# The browser loads nothing and runs no script, whatever the page contains.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def write(run_dir: Path, *, public: bool = False, out: Path | None = None) -> Path:
    """Write the page of a run, and return its path.

    Args:
        run_dir: The run directory.
        public: Write the public version.
        out: The file to write. None writes report.html or report-public.html into the run directory.

    Guarantee: the public version contains no number computed from the data, except those that the guarantee covers.

    Raises:
        InvalidInput: If there is no run in the directory, or the file can't be written.
    """
    run_dir = Path(run_dir)
    path = out if out is not None else run_dir / (PUBLIC_NAME if public else NAME)
    return write_atomically(path, render_page(read_run(run_dir), public=public))


def write_atomically(path: Path, content: str | bytes) -> Path:
    """Write a file completely or not at all, and return its path. An existing file is replaced."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_bytes(content.encode() if isinstance(content, str) else content)
        os.replace(draft, path)
    except OSError as error:
        raise InvalidInput(f"{path} can't be written ({error.strerror}).") from None
    finally:
        with suppress(OSError):  # already renamed, or never written
            draft.unlink()
    return path


def render_page(run: RunData, *, public: bool = False) -> str:
    """Return the whole page as HTML."""
    run = hide_run_folders(run) if public else run
    return html_page(page_sections.title(run), join(_body(run, public=public)))


def html_page(title: str, body: Html) -> str:
    """Return an HTML page with its style; it loads nothing and has no scripts."""
    style = files("discreet.report").joinpath("page.css").read_text(encoding="utf-8")
    policy = tag("meta", http_equiv="Content-Security-Policy", content=POLICY)
    return html_document(title, [policy, tag("style", Html(style))], tag("body", body))


def _body(run: RunData, *, public: bool) -> Iterator[Html]:
    verdict = judge(run)
    stopped = None if public else run.stop_reason
    yield tag(
        "header",
        tag("p", f"Training report · {run.name}" + (" · public version" if public else ""), class_="eyebrow"),
        tag("h1", page_sections.title(run)),
        tag(
            "div",
            *(tag("p", sentence) for sentence in (verdict.sentence, *verdict.more)),
            tag("p", stopped) if stopped else None,
            tag("p", run.warning) if run.warning and not public else None,
            class_=f"verdict {verdict.mood}",
            role="note",
            aria_label="Verdict",
        ),
    )
    files = None if public else page_sections.unreadable_files(run)
    yield tag("main", _tiles(run, public=public), files, *page_sections.sections(run, public=public))
    yield tag("footer", tag("p", _FOOTER_PUBLIC if public else _FOOTER))


def _tiles(run: RunData, *, public: bool) -> Html:
    tiles = [*page_sections.covered_tiles(run), *([] if public else page_sections.uncovered_tiles(run))]
    return definition_list(((name, join([value, tag("small", note)])) for name, value, note in tiles), class_="tiles")


_FOOTER = (
    "Written by discreet from the run directory alone. Numbers marked “not covered by the guarantee” were computed "
    "from the data without noise: show them only to those who may see the data. The public version leaves them out."
)
_FOOTER_PUBLIC = (
    "Written by discreet from the run directory alone. Every number that the guarantee doesn't cover was left out: "
    "accuracy and loss, the number of test examples, update norms and clipping, signal to noise, traffic, timings. "
    "Where clients add the noise themselves, the epsilon spent reveals how many took part."
)
