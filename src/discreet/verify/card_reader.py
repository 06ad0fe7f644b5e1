"""Read cards from plain JSON: a card, a list of them, or what `discreet account --card --json` or a run wrote."""

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

Step: TypeAlias = tuple[Any, ...]  # the kind of a step and its numbers: equal steps are equal tuples

RELATIONS = ("add_or_remove", "zero_out", "replace")
VIEWS = ("server", "client", "public")
STATED = ("epsilon", "delta", "relation", "event")
NOISES = {
    "gaussian": ("noise_multiplier",),
    "laplace": ("noise_multiplier",),
    "skellam": ("variance", "l2_sensitivity", "dimension"),
    "discrete_gaussian": ("variance", "l2_sensitivity"),
    "distributed_discrete_gaussian": ("variance", "l2_sensitivity", "shares"),
}
WHOLE = ("dimension", "shares")


class UnreadableCard(Exception):
    """The file holds no card that can be read; the message says what must be there and what was found."""


class UnknownEvent(Exception):
    """No theorem for the event is built into this checker."""


@dataclass(frozen=True)
class Card:
    """What a card claims: this event is (ε, δ)-private between neighbours under this relation. `data` is all of it."""

    epsilon: float
    delta: float
    relation: str
    event: Any
    data: Mapping[str, Any]


def read_cards(file: Path) -> list[Card]:
    """Read all cards of a file, or raise UnreadableCard."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"), object_pairs_hook=_read_object)
    except OSError as error:
        raise UnreadableCard(f"{file} must be a file that can be read ({error.strerror}).") from None
    except (ValueError, RecursionError) as error:
        raise UnreadableCard(f"{file} must hold JSON, and does not: {error}.") from None
    if isinstance(data, dict) and (data.get("promise", ""), data.get("guarantees")) == (None, []):
        raise UnreadableCard(f"{file} is of a run that promises no privacy, so there is no card to check.")
    if not (found := _find_cards(data)):
        raise UnreadableCard(f"{file} must hold a card with epsilon, delta, relation and event. It has none.")
    return [_read_card(card) for card in found]


def _read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    _require(len(set(names)) == len(names), "An object must have each name once", ", ".join(names))
    return dict(pairs)


def _find_cards(data: Any) -> list[Mapping[str, Any]]:
    """Return the cards in plain data, or raise UnreadableCard where ε, δ or the event beside a card is another."""
    match data:
        case list():
            return [card for entry in data for card in _find_cards(entry)]
        case {"guarantees": list() as entries}:
            return [{"seeded": data.get("seeded", False), **card} for card in _find_cards(entries)]
        case {"guarantee": {} as card}:
            for name in (name for name in STATED if name in data):
                both = f"{data[name]} beside the card and {card.get(name)} on it"
                _require(data[name] == card.get(name), f"A file with one card must state one {name}", both)
            return _find_cards(card)
        case {"epsilon": _, "delta": _, "event": _, "relation": _}:
            return [data]
        case _:
            return []


def _read_card(data: Mapping[str, Any]) -> Card:
    epsilon, delta, relation = _number(data, "epsilon"), _number(data, "delta"), data["relation"]
    _require(epsilon >= 0 and 0 < delta < 1, "A card must have ε ≥ 0 and 0 < δ < 1", (epsilon, delta))
    _require(relation in RELATIONS, f"A card's relation must be one of {', '.join(RELATIONS)}", relation)
    _require(data.get("view") in VIEWS, f"A card's view must be one of {', '.join(VIEWS)}", data.get("view"))
    unit: Any = data.get("unit")
    if isinstance(unit, dict) and unit.get("kind") == "person" and isinstance(unit.get("column"), str):
        _ = _count(unit, "at_most"), _count({"clients_at_most": 1, **unit}, "clients_at_most")
    else:
        _require(unit in ("example", "client"), "A card's unit must be example, client or a person", unit)
    return Card(epsilon, delta, relation, data["event"], data)


def count_steps(event: Any) -> Counter[Step]:
    """Return the distinct steps of an event's JSON and their counts, or raise UnreadableCard or UnknownEvent."""
    _require(isinstance(event, Mapping), "An event must be an object with a kind", event)
    match event.get("kind"):
        case "repeated":
            times = _count(event, "count")
            return Counter({step: times * count for step, count in count_steps(event.get("event")).items()})
        case "composed":
            return sum((count_steps(part) for part in event.get("events", ())), Counter())
        case "poisson_sampled":
            return Counter([_sampled_step("poisson", _rate(event), event)])
        case "sampled_without_replacement":
            cohort, population = _count(event, "cohort"), _count(event, "population")
            _require(cohort <= population, "A cohort must be at most the population", (cohort, population))
            return Counter([_sampled_step("fixed_size", cohort / population, event)])
        case "poisson_sampled_group" if event.get("group_size") == 1:
            return Counter([_sampled_step("poisson", _rate(event), event)])
        case "poisson_sampled_group":
            rate, size, noise = _rate(event), _count(event, "group_size"), _noise(event.get("event"))
            return Counter([group_noise(noise, size) if rate == 1 else ("group", rate, size, noise)])
        case _:
            return Counter([_noise(event)])


def _sampled_step(kind: str, rate: float, event: Mapping[str, Any]) -> Step:
    noise = _noise(event.get("event"))
    return noise if rate == 1 else (kind, rate, noise)


def group_noise(noise: Step, size: int) -> Step:
    """Return the noise relative to the move of a whole group, `size` sensitivities, rounded against the card.

    The move of integer noise is an integer vector too, so that its L1 norm follows from its L2 norm.
    """
    kind, scale, *rest = noise
    if not rest:
        return kind, math.nextafter(scale / size, 0)
    return kind, scale, math.nextafter(rest[0] * size, math.inf), *rest[1:]


def _noise(event: Any) -> Step:
    kind = event.get("kind") if isinstance(event, Mapping) else None
    if kind not in NOISES:
        raise UnknownEvent(f"No theorem for events of kind {kind!r} is built into this checker.")
    values = [_count(event, name) if name in WHOLE else _number(event, name) for name in NOISES[kind]]
    _require(all(0 < value < math.inf for value in values), f"Numbers of {kind} noise must be positive", values)
    return (kind, *values)


def _rate(event: Mapping[str, Any]) -> float:
    rate = _number(event, "sampling_rate")
    _require(0 < rate <= 1, "A sampling rate must be above 0 and at most 1", rate)
    return rate


def _count(event: Mapping[str, Any], name: str) -> int:
    value = event.get(name)
    _require(type(value) is int and value >= 1, f"{name} must be a whole number of at least 1", value)
    return int(value or 0)


def _number(data: Mapping[str, Any], name: str) -> float:
    value = data.get(name)
    _require(type(value) in (int, float) or value == "inf", f"{name} must be a number", value)
    return float(value or 0)


def _require(holds: bool, rule: str, found: Any) -> None:
    if not holds:
        raise UnreadableCard(f"{rule}, and this has {str(found)[:100]}.")
