"""Describe bounds, units, relations, views and events in plain words."""

import math
from collections.abc import Iterator, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context

from discreet.privacy import events
from discreet.privacy.events import Event, Step, has_sampling, step_noise, steps
from discreet.privacy.release import Person, Relation, Release, Unit, View, describe_clients

VIEWERS: dict[View, str] = {
    "server": "Anyone who sees what the server sees",
    "client": "A client that sees the released models and knows its own share of the noise",
    "public": "Anyone who sees only the released models",
}
VIEWS: dict[View, str] = {
    "server": "the server: all that it receives",
    "client": "another client: the released models, and its own share of the noise",
    "public": "the public: the released models, and nothing else",
}
DATA_RANGES = (
    "The ranges that scale the columns were taken from the data (taken_from_data = true): what they reveal of it comes "
    "on top of ε, and no guarantee covers it."
)


def sentence(viewer: str, unit: Unit, relation: Relation, false_alarms: float, recognised: float) -> str:
    """Return what a viewer can tell about one unit, for a reader who has never heard of ε."""
    secret = _secret(unit, relation)
    if recognised >= 1:
        return f"Nothing is promised: {viewer[0].lower()}{viewer[1:]} can tell for certain {secret}."
    alarms, caught = per_thousand(false_alarms), per_thousand(recognised)
    return (
        f"{viewer} can tell {secret} no better than this: allowed {alarms} false alarm in 1,000, the best possible "
        f"attack recognises at most {caught} in 1,000, where blind guessing recognises {alarms}."
    )


def describe_relation(relation: Relation, unit: Unit) -> str:
    """Describe how neighbours differ, and what therefore isn't hidden."""
    name = unit_name(unit)
    match relation:
        case "add_or_remove":
            return f"add or remove: the data with this {name} and without"
        case "zero_out":
            held = "how many examples a client holds is public"
            return (
                "zero-out: "
                + {
                    "example": f"this example, or a blank in its place; {held}",
                    "person": f"this person's examples, or blanks in their place; {held}",
                    "client": "this client's contribution, or an empty one; that it was asked isn't hidden",
                }[name]
            )
        case "replace":
            return f"replace: this {name}, or any other in its place; how many there are isn't hidden"


def _secret(unit: Unit, relation: Relation) -> str:
    name = unit_name(unit)
    match relation:
        case "add_or_remove":
            return f"whether any one {name} {'took part' if name == 'client' else 'was used'}"
        case "zero_out":
            return {
                "example": "whether any one example or a blank in its place was used",
                "person": "whether any one person's examples or blanks in their place were used",
                "client": "any one client's contribution from an empty one",
            }[name]
        case "replace":
            return f"any one {name} from another in {'their' if name == 'person' else 'its'} place"


def unit_name(unit: Unit) -> str:
    """Return the unit in one word: example, person or client."""
    return "person" if isinstance(unit, Person) else unit


def describe_unit(unit: Unit, view: View, clients: Sequence[int] | None = None) -> str:
    """Describe the unit: of any client, or of these clients, which have a guarantee of their own."""
    if clients is not None:
        kind = unit_name(unit)
        whose = "its" if len(clients) == 1 else "their"
        return (
            f"{describe_clients(clients)}, with all {whose} data"
            if kind == "client"
            else f"one {kind} of {describe_clients(clients)}"
        )
    other = "other " if view == "client" else ""  # a client knows its own data
    if isinstance(unit, Person):
        rows = f"the rows with one value of {unit.column!r}, at most {unit.max_examples}"
        return f"one person: {rows}, in one {other}client"
    return {"example": f"one example, of any {other}client", "client": f"one {other}client, with all its data"}[unit]


def describe_event(event: Event) -> str:
    """Describe the event in words: its distinct steps and how often each happened."""
    counts = steps(event)
    phrases = [
        f"{count:,} × {_describe_step(step)}" if count > 1 else _describe_step(step)
        for step, count in list(counts.items())[:3]
    ]
    more = len(counts) - len(phrases)
    return ("; ".join(phrases) + (f"; and {more:,} more kinds of step" if more else "")) or "nothing"


def _describe_step(step: Step) -> str:
    match step:
        case events.PoissonSampled():
            return f"{_describe_step(step.event)}, Poisson sampling at rate {compact(step.sampling_rate)}"
        case events.SampledWithoutReplacement():
            return f"{_describe_step(step.event)}, {step.cohort:,} drawn out of {step.population:,}"
        case events.GaussianNoise() | events.LaplaceNoise():
            return f"{step.kind.capitalize()} noise of multiplier {round_up(step.noise_multiplier, 6)}"
        case events.DistributedDiscreteGaussianNoise():
            variance, sensitivity = compact(float(round_up(step.variance, 6))), compact(step.l2_sensitivity)
            shares = f"{step.shares:,} shares of discrete Gaussian noise of variance {variance} each"
            return f"{shares} for L2 sensitivity {sensitivity}"
        case _:
            name = step.kind.replace("_", " ").capitalize()
            variance, sensitivity = compact(float(round_up(step.variance, 6))), compact(step.l2_sensitivity)
            return f"{name} noise of variance {variance} for L2 sensitivity {sensitivity}"


def release_assumptions(release: Release) -> Iterator[str]:
    """Yield what must be true of a run that makes this release, as far as the release itself shows it."""
    name = unit_name(release.unit)
    yield f"One {name} moves each sum by no more than the sensitivity that the noise was scaled to."
    if release.unit == "example":
        yield "An example is in one client only, or the mechanism counts every client that holds it."
    if isinstance(release.unit, Person):
        yield f"No person has more than {release.unit.max_examples} rows, and none has rows in two clients."
    yield "The noise is fresh, comes from a secret source, and nobody with this view can remove it" + (
        " beyond their own share." if release.view == "client" else "."
    )
    if has_sampling(release.event):
        yield "Who is sampled is drawn in secret, afresh for every step, and stays unknown to this view."
    if release.relation == "add_or_remove":
        yield "Sums are divided by public constants, never by counts from the data."
    elif release.relation == "zero_out" and release.unit != "client":
        yield (
            "Divisors, sampling rates and numbers of steps follow from how many examples each client holds, which is "
            "public, and never from what is in them."
        )
    else:
        yield f"How many {'people' if name == 'person' else f'{name}s'} there are is public."
    if any(isinstance(step_noise(step), events.GaussianNoise | events.LaplaceNoise) for step in steps(release.event)):
        yield "Sums and noise are computed in floating point, while the theorem is about real numbers."


def release_exclusions(release: Release) -> Iterator[str]:
    """Yield what a reader might expect the guarantee to cover, but it doesn't."""
    yield {
        "server": "Observers inside a client, before its noise is added.",
        "client": "Clients that pool what they know; the server.",
        "public": "The server, which sees more than the released models.",
    }[release.view]
    if isinstance(release.unit, Person):
        yield f"One person under several values of {release.unit.column!r}."
    else:
        yield f"Several {release.unit}s together: a person behind many of them is protected less."
    if release.relation == "zero_out" and release.unit != "client":
        yield "Whether a client holds one example more or less."
    yield "Tuning, model selection and evaluation on the same data."
    yield "Preprocessing fitted on the data: scalers, vocabularies, projections."
    yield "Metrics, norms, counts and cohort sizes that are sent in clear."
    yield f"What is true of people in general: it is learned with or without any one {unit_name(release.unit)}."


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
