"""A progress bar in a notebook: one output that is replaced as the rounds proceed, without widgets."""

import importlib
from collections.abc import Callable
from html import escape
from time import monotonic
from typing import Any

SECONDS_BETWEEN = 0.1  # so that quick rounds don't flood the notebook
TRACK = "display:inline-block;width:12em;height:.7em;border-radius:.35em;background:rgba(128,128,128,.25);"
FILL = "display:block;height:100%;border-radius:.35em;background:#2e7fc2;"


class NotebookBar:
    """Shows how many rounds are done, what is known about them, and how long the rest may take.

    Args:
        rounds: Number of rounds.
        clock: Returns seconds; it only goes forward.
    """

    def __init__(self, rounds: int, clock: Callable[[], float] = monotonic) -> None:
        self._rounds, self._clock = rounds, clock
        self._first_round: int | None = None
        self._began = self._shown = clock()
        self._last = self._content(0, "")
        notebook: Any = importlib.import_module("IPython.display")  # which every notebook has
        self._output: Any = notebook.display(self._last, raw=True, display_id=True)

    def show(self, done: int, text: str) -> None:
        """Show that so many rounds are done."""
        now = self._clock()
        if self._first_round is None:
            self._first_round = done - 1  # a resumed run begins later
        self._last = self._content(done, text)
        if done >= self._rounds or now - self._shown >= SECONDS_BETWEEN:
            self._shown = now
            self._output.update(self._last, raw=True)

    def close(self) -> None:
        """Show the last round, which stays in the notebook."""
        self._output.update(self._last, raw=True)

    def _content(self, done: int, text: str) -> dict[str, str]:
        """Return the bar as HTML, and as text for notebooks that show no HTML."""
        words = "  ".join(part for part in (f"round {done}/{self._rounds}", text, self._describe_rest(done)) if part)
        share = 100 * done / self._rounds
        bar = f'<span style="{TRACK}"><span style="{FILL}width:{share:.0f}%"></span></span>'
        html = f'<div role="status">{bar} <span style="white-space:pre-wrap">{escape(words)}</span></div>'
        return {"text/html": html, "text/plain": words}

    def _describe_rest(self, done: int) -> str:
        played = done - (self._first_round or 0)
        if not 0 < done < self._rounds or played < 1:
            return ""
        left = round((self._clock() - self._began) / played * (self._rounds - done))
        return f"{left // 60}:{left % 60:02d} left"
