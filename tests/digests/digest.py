"""The digest of a run: its model in a few numbers, all numbers of its card, and its ledgers' entries.

Times, hashes, keys, paths and the commit of the code are omitted, because they differ from run to run without meaning.
Sentences are omitted too, so that they can be reworded; the numbers in the card's sentences are kept.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from tests.digests.run import FinishedRun

PROJECTIONS = 4
SENTENCES = ("assumptions", "not_covered")
SOURCES = {"assumption_sources", "exclusion_sources"}  # as many as there are sentences
CODE = {"version", "commit", "dirty", "code", "client_code"}
DROPPED_FROM_CARD = {"stopped", "warning", "engine", "source", "reason", "head", "path"} | CODE | SOURCES
DROPPED_FROM_LEDGER = {"seq", "at", "prev", "hash", "code"}
_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?")
_HEX = re.compile(r"\b[0-9a-f]{16,}\b")

Digest = dict[str, Any]


def digest_run(finished: FinishedRun) -> Digest:
    card = json.loads(finished.record.read_text("guarantee.json"))
    return {
        "model": digest_model(finished.record.load_model()),
        "card": digest_card(card) | {"finished": card["stopped"] is None},
        "contributors": [line["clients"] for line in finished.record.read_rounds()],
        "ledgers": [digest_ledger(path) for path in finished.ledgers],
    }


def digest_model(model: Mapping[str, Tensor]) -> Digest:
    """Return the hash of every bit, and numbers that hardly change with the last bits: the norm and some projections.

    A projection adds up all coordinates with fixed signs, divided by the root of their number.
    """
    bits, values = hashlib.sha256(), []
    for name in sorted(model):
        array = model[name].detach().cpu().contiguous().numpy()
        bits.update(f"{name} {array.shape} {array.dtype}\n".encode() + array.tobytes())
        values.append(array.astype(np.float64).ravel())
    flat = np.concatenate(values)
    return {
        "sha256": bits.hexdigest(),
        "dtypes": sorted({str(value.dtype) for value in model.values()}),
        "numbers": len(flat),
        "norm": float(np.linalg.norm(flat)),
        "projections": [float(flat @ _signs(at, len(flat))) / len(flat) ** 0.5 for at in range(PROJECTIONS)],
    }


def digest_card(value: Any) -> Any:
    """Return the card's plain data without sentences, names of programs and hashes."""
    if isinstance(value, dict):
        return {
            name: _numbers_in(each) if name in SENTENCES else digest_card(each)
            for name, each in value.items()
            if name not in DROPPED_FROM_CARD
        }
    if isinstance(value, list):
        return [digest_card(each) for each in value]
    return _without_hashes(value)


def digest_ledger(path: Path) -> list[Digest]:
    """Return a ledger's entries; of a key, its words and its round."""
    lines = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return [
        {name: _without_hashes(value) for name, value in line.items() if name not in DROPPED_FROM_LEDGER}
        for line in lines
    ]


def _numbers_in(sentences: list[str]) -> list[float]:
    """Return the numbers sorted by size, so that sentences may change places."""
    return sorted(float(found.replace(",", "")) for each in sentences for found in _NUMBER.findall(each))


def _without_hashes(value: Any) -> Any:
    return _HEX.sub("…", value) if isinstance(value, str) else value


def _signs(at: int, length: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """±1 for each coordinate, the same on every machine."""
    drawn = np.frombuffer(hashlib.shake_256(f"projection {at}".encode()).digest(-(-length // 8)), dtype=np.uint8)
    return np.unpackbits(drawn)[:length].astype(np.float64) * 2.0 - 1.0
