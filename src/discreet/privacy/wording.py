"""Describe bounds, units, relations, views and events in plain words."""

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from functools import reduce
from typing import Literal

from discreet.privacy import events
from discreet.privacy.events import BestOf, Event, Step, steps
from discreet.privacy.release import Person, Relation, Unit, View, list_clients
from discreet.words import fill


def sentence(
    view: View | Literal["results"], unit: Unit, relation: Relation, false_alarms: float, recognised: float
) -> str:
    """Return what someone with this view can tell about one unit, for a reader who has never heard of ε."""
    secret = fill(f"secret.{relation}.{unit_name(unit)}")
    alarms, caught = per_thousand(false_alarms), per_thousand(recognised)
    if recognised >= 1:
        return fill(f"sentence.{view}.unbounded", secret=secret, alarms=alarms)
    return fill(f"sentence.{view}.bound", secret=secret, alarms=alarms, recognised=caught)


def describe_relation(relation: Relation, unit: Unit) -> str:
    """Describe how neighbours differ, and what therefore isn't hidden."""
    return fill(f"relation.{relation}.{unit_name(unit)}")


def unit_name(unit: Unit) -> Literal["example", "person", "client"]:
    """Return the unit in one word, as files and templates name it."""
    return "person" if isinstance(unit, Person) else unit


def describe_unit(unit: Unit, view: View, clients: Sequence[int] | None = None) -> str:
    """Describe the unit: of any client, or of these clients, which have a guarantee of their own."""
    name = unit_name(unit)
    if clients is not None:
        whose = "one_client" if len(clients) == 1 else "several_clients"
        return fill(f"unit.{whose}.{name}", clients=list_clients(clients))
    whose = "other_client" if view == "client" else "any_client"  # a client knows its own data
    if not isinstance(unit, Person):
        return fill(f"unit.{whose}.{name}")
    rows = {"column": repr(unit.column), "most": str(unit.at_most)}
    if unit.clients_at_most == 1:
        return fill(f"unit.{whose}.person", **rows)
    return fill(f"unit.{whose}.person_in_clients", number=str(unit.clients_at_most), **rows)


def describe_event(event: Event) -> str:
    """Describe the event in words: its distinct steps and how often each happened."""
    counts = steps(event)
    phrases = [
        fill("event.repeated", count=f"{count:,}", step=_describe_step(step)) if count > 1 else _describe_step(step)
        for step, count in list(counts.items())[:3]
    ]
    listed, more = "; ".join(phrases), len(counts) - len(phrases)
    return (fill("event.more", steps=listed, more=f"{more:,}") if more else listed) or fill("event.nothing")


def _describe_step(step: Step) -> str:
    match step:
        case events.PoissonSampled():
            return fill("event.poisson_sampled", noise=_describe_step(step.event), rate=compact(step.sampling_rate))
        case events.PoissonSampledGroup():
            drawn = {"rate": compact(step.sampling_rate), "size": f"{step.group_size:,}"}
            return fill("event.poisson_sampled_group", noise=_describe_step(step.event), **drawn)
        case events.SampledWithoutReplacement():
            drawn = {"cohort": f"{step.cohort:,}", "population": f"{step.population:,}"}
            return fill("event.sampled_without_replacement", noise=_describe_step(step.event), **drawn)
        case events.TruncatedPoissonSampled():
            drawn = {
                "rate": compact(step.sampling_rate),
                "most": f"{step.max_batch_size:,}",
                "population": f"{step.population:,}",
            }
            return fill("event.truncated_poisson_sampled", noise=_describe_step(step.event), **drawn)
        case events.RandomAllocation():
            return fill("event.random_allocation", noise=_describe_step(step.event), bins=f"{step.bins:,}")
        case events.RandomisedResponse():
            share = round_down(step.random_share, 6)
            return fill("event.randomised_response", categories=f"{step.categories:,}", share=share)
        case events.ZeroConcentrated():
            return fill("event.zcdp", rho=round_up(step.rho, 6))
        case BestOf(count=count, trials=trials):
            whole = fill("event.best_of", trial=describe_event(trials[0]), mean=compact(count.mean, 4))
            return whole if len(trials) == 1 else fill("event.more_trials", best_of=whole, more=len(trials) - 1)
        case events.GaussianNoise() | events.LaplaceNoise():
            return fill(f"event.{step.kind}", multiplier=round_up(step.noise_multiplier, 6))
        case _:
            scale = {
                "variance": compact(float(round_up(step.variance, 6))),
                "sensitivity": compact(step.l2_sensitivity),
            }
            if isinstance(step, events.DistributedDiscreteGaussianNoise):
                scale["shares"] = f"{step.shares:,}"
            return fill(f"event.{step.kind}", **scale)


def join_names(names: Sequence[str]) -> str:
    """Join names of parts or metrics for a card: `a`, `a and b`, `a and b and c`."""
    return reduce(lambda first, last: fill("list.pair", first=first, last=last), names)


def per_thousand(rate: float) -> str:
    """Format a rate as a number in a thousand, rounded up."""
    return round_up(1000 * rate, 2 if rate < 0.01 else 3)


def round_up(value: float, digits: int = 4) -> str:
    """Format a bound in few digits, rounded up, so that the printed number is still a bound."""
    return _round(value, digits, ROUND_CEILING)


def round_down(value: float, digits: int = 4) -> str:
    """Format a lower bound in few digits, rounded down."""
    return _round(value, digits, ROUND_FLOOR)


def _round(value: float, digits: int, rounding: str) -> str:
    if math.isinf(value):
        return compact(value)
    exactly = f"{value:.12g}"  # 0.1 + 0.2 is 0.3: a rounding error of the value itself is not worth a digit
    return compact(float(Context(prec=digits, rounding=rounding).create_decimal(exactly)), digits + 1)


def compact(value: float, digits: int = 6) -> str:
    """Format a number in few digits, with 1e-5 rather than 1e-05."""
    return f"{value:.{digits}g}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")


def join_words(words: Sequence[str]) -> str:
    """Join words as a sentence lists them: `a`, `a and b`, `a, b and c`."""
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last
