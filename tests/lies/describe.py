"""What a lie achieved, as a record that follows from what was measured."""

import re
from typing import Any

from discreet.engines.flower.signed_messages import Refusal, read_reply
from tests.lies.play import RunResult

PROGRESS = ("Run '", "round ", "Warning: ", "Waiting for ", "Stopped after ")
NAME = re.compile(r"client-(\d)")
DIGEST = re.compile(r"[0-9a-f]{12}…")
QUARREL = "or they lie"


def describe(stage: str, text: str, played: RunResult, liars: set[int]) -> dict[str, Any]:
    """Return the record of a played lie: who is in each sum, what it cost, who is named, and what nodes replied.

    Args:
        stage: The stage of the lie.
        text: What is told.
        played: What came of it.
        liars: The clients that lie; empty if the server does.
    """
    lines = [line for line in played.operator if not line.startswith(PROGRESS)]
    return {
        "stage": stage,
        "lie": text,
        "liars": sorted(liars),
        "rounds": [None if each is None else list(each) for each in played.rounds],
        "exact": played.exact,
        "noise": [round(each, 1) for each in played.noise],
        "stopped": played.stopped is not None,
        "left_out": sorted(played.left_out),
        "counted": played.counted,
        "updates": played.sent,
        "told": played.told,
        "named": sorted(_find_accused(lines)),
        "quarrel": sorted(_find_quarrels(lines)),
        "silence": sorted({int(name) for line in lines if " for want of " in line for name in NAME.findall(line)}),
        "strangers": any(line.startswith("A node ") for line in lines),
        "owners": _owners_accusations(played),
        "refusing": [client for client, lines in enumerate(played.owners) if any(map(_is_refusal, lines))],
        "replies": sorted({_describe_reply(reply, played) for _, _, reply in played.answers}),
    }


def _find_accused(lines: list[str]) -> set[int]:
    """Return the clients that the operator reads to have done something wrong, without the sides of a quarrel."""
    found = set()
    for line in lines:
        if QUARREL not in line and " for want of " not in line:
            end = " is left out of " if " is left out of " in line else ": "
            found |= {int(name) for name in NAME.findall(line.partition(end)[0])}
    return found


def _find_quarrels(lines: list[str]) -> set[int]:
    """Return the clients of whom the operator reads that one side or the other lies."""
    return {int(name) for line in lines if QUARREL in line for name in NAME.findall(line)}


def _owners_accusations(played: RunResult) -> dict[str, list[int]]:
    """Return by client the owners who read that they can't use what it dealt."""
    found: dict[str, list[int]] = {}
    for owner, lines in enumerate(played.owners):
        for client in sorted({line[len("About client-")] for line in lines if line.startswith("About client-")}):
            found.setdefault(client, []).append(owner)
    return found


def _is_refusal(line: str) -> bool:
    return line.startswith("Refused")


def _describe_reply(reply: bytes, played: RunResult) -> str:
    """Return the first sentence of a refusal without digests, or what an answer is."""
    answer = read_reply(reply)
    if isinstance(answer, Refusal):
        return re.split(r"(?<=\.) ", DIGEST.sub("…", answer.why))[0]
    return "the same bytes again" if reply in played.replies else "an answer"
