"""A client of the SuperLink that asks again while the SuperLink's database is busy.

flwr 1.41 waits five seconds for its SQLite database and then answers 500, which ended the run: on a slow disk, storing
the pieces of a large model takes longer. Nothing of such a call was stored.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx

BUSY = 500
PATIENCE_SECONDS = 60.0
PAUSE_SECONDS = 0.5


@dataclass(frozen=True)
class PatientClient:
    """A client of flwr's with the same calls, whose names begin with a capital letter."""

    client: Any
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self.client, name)
        return self._repeat(attribute) if name[:1].isupper() else attribute

    def _repeat(self, call: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def ask(request: Any) -> Any:
            until = self.clock() + PATIENCE_SECONDS
            while True:
                try:
                    return call(request)
                except httpx.HTTPStatusError as error:
                    if error.response.status_code != BUSY or self.clock() >= until:
                        raise
                self.sleep(PAUSE_SECONDS)

        return ask
