"""`discreet tradeoff ldp`: what local noise costs in utility and bits, by paper 001's bounds and by our accountant."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias

import click
from typer import Option

from discreet.cli.options import COUNT, PROBABILITY, RATE
from discreet.cli.output import Json, emit
from discreet.cli.tradeoff.ldp_answer import Answer
from discreet.cli.tradeoff.picture_option import PictureFile, drawn
from discreet.cli.tradeoff.sweep_rows import SCALE
from discreet.errors import InvalidInput

if TYPE_CHECKING:
    from discreet.planning.theory.kim_client_groups import Group


class Given(NamedTuple):
    """A group as it was typed."""

    clients: int
    sampling_rate: float
    examples: int | None = None
    epsilon: float | None = None


class Typed(click.ParamType):  # type: ignore[type-arg]  # it takes one only from click 8.5 on
    """CLIENTS:RATE[:EXAMPLES[:EPSILON]]; an empty field is left out."""

    name = "group"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Given:
        fields = str(value).split(":")
        if not 2 <= len(fields) <= len(Given._fields) or not all(fields[:2]):
            self.fail(f"must be CLIENTS:RATE[:EXAMPLES[:EPSILON]], and got {value!r}.", param, ctx)
        kinds = (COUNT, RATE, COUNT, SCALE)
        each = [kind.convert(field, param, ctx) if field else None for kind, field in zip(kinds, fields, strict=False)]
        return Given._make([*each, None, None][: len(kinds)])


Epsilon: TypeAlias = Annotated[
    float, Option(click_type=SCALE, metavar="E", show_default=False, help="What is promised; 1 by default.")
]
Delta: TypeAlias = Annotated[
    float,
    Option(click_type=PROBABILITY, metavar="D", show_default=False, help="What epsilon is for; 1e-4 by default."),
]
SamplingRate: TypeAlias = Annotated[
    float | None,
    Option(click_type=RATE, metavar="Q", show_default=False, help="Of examples, each round; 1e-3 by default."),
]
Rounds: TypeAlias = Annotated[
    int, Option(click_type=COUNT, metavar="T", show_default=False, help="How many; 70000 by default.")
]
Dimension: TypeAlias = Annotated[
    int, Option(click_type=COUNT, metavar="N", show_default=False, help="Of the model; 10000 by default.")
]
Clients: TypeAlias = Annotated[
    int | None, Option(click_type=COUNT, metavar="K", show_default=False, help="All alike; 100 by default.")
]
Examples: TypeAlias = Annotated[
    int | None, Option(click_type=COUNT, metavar="N", help="Of each client, to know its expected batch.")
]
Groups: TypeAlias = Annotated[
    list[Given] | None,
    Option(
        "--group",
        click_type=Typed(),
        metavar="K:Q[:N[:E]]",
        help="K clients at rate Q, with N examples and epsilon E; again for others, in place of --clients.",
    ),
]
Clip: TypeAlias = Annotated[
    float, Option(click_type=SCALE, metavar="C", show_default=False, help="Longest gradient sent; 1 by default.")
]
GradientBound: TypeAlias = Annotated[
    float, Option(click_type=SCALE, metavar="G", show_default=False, help="Longest gradient met; 5 by default.")
]
Smoothness: TypeAlias = Annotated[
    float, Option(click_type=SCALE, metavar="M", show_default=False, help="Of the loss, mu; 1 by default.")
]
Convexity: TypeAlias = Annotated[
    float, Option(click_type=SCALE, metavar="L", show_default=False, help="Of the loss, lambda; 1 by default.")
]
Step: TypeAlias = Annotated[
    float,
    Option(click_type=SCALE, metavar="S", show_default=False, help="What is sent is rounded to; 1 by default."),
]


def ldp(
    epsilon: Epsilon = 1.0,
    delta: Delta = 1e-4,
    sampling_rate: SamplingRate = None,
    rounds: Rounds = 70_000,
    dimension: Dimension = 10_000,
    clients: Clients = None,
    examples: Examples = None,
    group: Groups = None,
    clip: Clip = 1.0,
    gradient_bound: GradientBound = 5.0,
    smoothness: Smoothness = 1.0,
    convexity: Convexity = 1.0,
    step: Step = 1.0,
    picture: PictureFile = None,
    as_json: Json = False,
) -> None:
    """Local noise: privacy, utility and bits (paper 001).

    The noise that each of the paper's bounds asks for, and ours; what that noise truly costs in epsilon; and the
    utility and bits that follow. The defaults are the paper's.
    """
    from discreet.planning.theory.kim_client_groups import Group, evaluate_groups
    from discreet.planning.theory.kim_noise_bounds import Promise
    from discreet.planning.theory.kim_utility import Learning

    if group and not (clients is None and sampling_rate is None):
        raise InvalidInput(
            "A --group names its clients and their rate.", fix="Leave --clients and --sampling-rate out."
        )
    promise = Promise(epsilon=epsilon, delta=delta, sampling_rate=sampling_rate or 1e-3, rounds=rounds)
    alike = Group(clients=clients or 100, promise=promise, examples=examples)
    groups = tuple(_group(given, alike) for given in group or ()) or (alike,)
    if picture is not None and len(groups) > 1:
        raise InvalidInput("A picture is of clients who are alike.", fix="Give one --group, or none.")
    learning = Learning(
        rounds=rounds,
        dimension=dimension,
        clip_norm=clip,
        gradient_bound=gradient_bound,
        smoothness=smoothness,
        convexity=convexity,
    )
    answer = Answer(groups, learning, step, *evaluate_groups(groups, learning, step))
    drawn(answer.picture, picture)
    emit(answer.data, answer.page, as_json=as_json)


def _group(given: Given, alike: "Group") -> "Group":
    """What is left out is as for everybody."""
    promise = replace(alike.promise, sampling_rate=given.sampling_rate, epsilon=given.epsilon or alike.promise.epsilon)
    return replace(alike, clients=given.clients, promise=promise, examples=given.examples or alike.examples)
