"""The contract of every trade-off: one answer in three forms."""

from collections.abc import Iterator
from typing import Any, Protocol

from rich.console import RenderableType

from discreet.report.curves import Picture


class Tradeoff(Protocol):
    """An answer that `discreet tradeoff` prints or draws."""

    def data(self) -> dict[str, Any]:
        """Return the answer as the JSON object of the command."""

    def page(self) -> Iterator[RenderableType]:
        """Yield the answer as text and tables that fit 80 columns."""

    def picture(self) -> Picture:
        """Return the curves to draw."""
