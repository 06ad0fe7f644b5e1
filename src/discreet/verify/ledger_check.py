"""Compare a card with the ledger of its run: the hash chain, its head and length, and the steps that were released."""

import hashlib
import json
import re
from collections import Counter, defaultdict
from functools import partial
from pathlib import Path
from typing import Any

from discreet.verify.card_reader import Card, Step, UnknownEvent, UnreadableCard, count_steps, group_noise

HASH_BYTES = 75  # ,"hash":"…"} with 64 hexadecimal digits
ENOUGH_FOR = {"public": ("public", "server", "client"), "server": ("server",), "client": ("client",)}  # sees no more
MALFORMED = (TypeError, ValueError, KeyError, AttributeError, RecursionError, OverflowError)


def check_ledger(card: Card, path: Path, run: str | None, shared: bool = False) -> tuple[str, str]:
    """Compare a card with a ledger, in which the run names its reservations by its identity `run`.

    A step that the card leaves out contradicts it in a ledger of this run alone; in a shared one the name may mislead.
    """
    mark = card.data.get("ledger")
    if not isinstance(mark, dict):
        return "none", "The card names no ledger."
    if not path.is_file():
        return "unknown", f"The card names a ledger, and {path} is not there."
    length, head = mark.get("length"), mark.get("head")
    try:
        records = read_chain(path.read_bytes())
    except (ValueError, RecursionError) as broken:
        return "contradicts", str(broken)
    if not isinstance(length, int) or not 0 < length <= len(records):
        return "contradicts", f"The card counts {length} lines, and the ledger has {len(records)}."
    if records[length - 1]["hash"] != head:
        return "contradicts", f"Line {length} of the ledger has another hash than the card names."
    intact = f"The chain of {len(records)} lines is intact and has the card's head at line {length}"
    try:
        events = (_released_steps(records[:length], card, run), count_steps(card.event))
        listed, counted = map(_to_twelve_digits, events)
    except (UnknownEvent, UnreadableCard, *MALFORMED) as problem:  # malformed with hashes that fit: somebody forged it
        return "unknown", f"{intact}, but its events can't be compared with the card's: {problem}"
    if more := sum((listed - counted).values()):
        state = "unknown" if shared else "contradicts"
        return state, f"{intact}, but counts {more} steps that are not in the card's event."
    same = "the same steps" if listed == counted else "no step that is not on the card"
    return "agrees", f"{intact}, and counts {same}."


def read_chain(content: bytes) -> list[dict[str, Any]]:
    """Return the records of a ledger, each with the hash of its line's bytes, or raise ValueError at a broken line.

    A last line without an end was never reported to anyone, and is left out.
    """
    records: list[dict[str, Any]] = []
    *lines, last = content.split(b"\n")
    for number, line in enumerate([*lines, last] if b',"hash":"' in last[-HASH_BYTES:] else lines, start=1):
        payload = line[:-HASH_BYTES] + b"}"
        digest = hashlib.sha256(payload).hexdigest()
        if line[-HASH_BYTES:] != f',"hash":"{digest}"}}'.encode():
            raise ValueError(f"Line {number} of the ledger does not match its hash.")
        record, before = json.loads(payload), records[-1]["hash"] if records else "0" * 64
        if not isinstance(record, dict) or (record.get("seq"), record.get("prev")) != (number - 1, before):
            raise ValueError(f"Line {number} of the ledger does not follow the one before.")
        records.append({**record, "hash": digest})
    return records


def _released_steps(records: list[dict[str, Any]], card: Card, run: str | None) -> Counter[Step]:
    """Return the steps counted for the card's unit and view, or raise UnknownEvent where clients differ."""
    reserved: dict[int, list[dict[str, Any]]] = {}
    for record in records:
        match record:
            case {"type": "reserve", "seq": seq, "key": str() as key, "releases": list() as releases}:
                reserved |= {seq: releases} if run is None or key.startswith(f"run {run} ") else {}
            case {"type": "commit", "ticket": ticket, "releases": list() as releases} if ticket in reserved:
                reserved[ticket] = releases
            case {"type": "void", "ticket": ticket}:
                reserved.pop(ticket, None)
    releases = [release for listed in reserved.values() for release in listed]
    unit: Any = card.data.get("unit")
    implied = [unit, *(["example"] if isinstance(unit, dict) else []), *(["client"] if unit != "client" else [])]
    for view in ENOUGH_FOR[card.data["view"]]:
        for known in implied:
            if named := [each for each in releases if (each.get("view"), each.get("unit")) == (view, known)]:
                return _most_steps(named, card)
    raise UnknownEvent("it names no release from which anything follows for the card's unit and view.")


def _most_steps(releases: list[dict[str, Any]], card: Card) -> Counter[Step]:
    """Return the steps of the client about which most was released, of those that the card is about."""
    of_clients: defaultdict[Any, Counter[Step]] = defaultdict(Counter)
    for release in releases:
        steps = _steps_for_unit(release, card)
        for client in release.get("clients") or [None]:
            of_clients[client] += steps
    most = everyone = of_clients.pop(None, Counter())
    for client in set(card.data.get("clients") or of_clients) & set(of_clients):
        most = most | (everyone + of_clients[client])
    return most


def _steps_for_unit(release: dict[str, Any], card: Card) -> Counter[Step]:
    """Return the release's steps as the card must count them for its unit and relation, or raise UnknownEvent."""
    steps, known, replaced = count_steps(release.get("event")), release.get("relation"), card.relation == "replace"
    unit: Any = card.data.get("unit")
    clients = unit.get("clients_at_most", 1) if isinstance(unit, dict) else 1
    follows = replaced or known == card.relation or (known, card.relation) == ("add_or_remove", "zero_out")
    by_client = release.get("unit") == "client" and replaced and clients == 1  # any change in it replaces its update
    if by_client or (release.get("unit") == unit and follows):
        return steps
    if release.get("unit") == "example" and isinstance(unit, dict) and not replaced and known != "replace":
        size, times = (unit["at_most"], clients) if release.get("separate") else (unit["at_most"] * clients, 1)
        return Counter({_group_step(step, size): times * count for step, count in steps.items()})
    raise UnknownEvent(f"it is about one {release.get('unit')} under {known}, from which the card does not follow.")


def _group_step(step: Step, size: int) -> Step:
    match step:
        case ("poisson", rate, noise):
            return ("group", rate, size, noise) if size > 1 else step
        case (kind, *_, tuple()):
            raise UnknownEvent(f"groups under the sampling {kind} have no theorem here.")
        case _:
            return group_noise(step, size)


def _to_twelve_digits(steps: Counter[Step]) -> Counter[str]:
    """Return the steps as text in which equal steps agree, however their numbers were computed."""
    shorten = partial(re.sub, r"\d+\.\d+(e[-+]\d+)?", lambda number: f"{float(number[0]):.12g}")
    return sum((Counter({shorten(repr(step)): count}) for step, count in steps.items()), Counter())
