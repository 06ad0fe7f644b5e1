"""One attempt: does a parser read these bytes, or refuse them in one sentence?"""

import tempfile
import time
import warnings
from pathlib import Path

from discreet.errors import DiscreetError
from discreet.verify.card_reader import UnknownEvent, UnreadableCard
from tests.fuzz.parsers import PARSERS

REFUSALS = (DiscreetError, UnreadableCard, UnknownEvent)
LONGEST = 1500  # characters of a sentence
SLOWEST = 10.0  # seconds for an input of a few kilobytes


def find_fault(parser: str, content: bytes) -> str:
    """Return what is wrong with how a parser takes these bytes, with where it failed; empty if nothing is."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder, warnings.catch_warnings():
        warnings.simplefilter("error")
        began = time.process_time()
        try:
            PARSERS[parser](content, Path(folder))
        except REFUSALS as error:
            return describe_sentence(str(error))
        except Exception as error:  # noqa: BLE001 - whatever else comes out is what is looked for
            return f"{type(error).__name__} in {_place(error)}: {ascii(error)[:200]}"
        took = time.process_time() - began
        return f"took {took:.0f} seconds" if took > SLOWEST else ""


def describe_sentence(text: str) -> str:
    """Return what is wrong with a refusal; empty if nothing is."""
    if "\n" in text:
        return f"a refusal of several lines: {ascii(text)[:200]}"
    if len(text) > LONGEST:
        return f"a refusal of {len(text)} characters"
    return "" if text.endswith((".", "?", ")", '"', "…")) or ": " in text else f"no sentence: {ascii(text)[:200]}"


def _place(error: BaseException) -> str:
    """Return the last line of this package that the error came through."""
    place, frame = "", error.__traceback__
    while frame is not None:
        file = Path(frame.tb_frame.f_code.co_filename)
        if "discreet" in file.parts:
            place = f"{file.name}:{frame.tb_lineno}"
        frame = frame.tb_next
    return place
