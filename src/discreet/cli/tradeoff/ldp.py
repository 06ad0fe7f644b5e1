"""`discreet tradeoff ldp`: privacy, utility and bits of local noise (Kim, Günlü & Schaefer 2021)."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias

import click

from discreet.cli.options import COUNT, RATE
from discreet.cli.output import Json
from discreet.cli.tradeoff import tradeoff_options
from discreet.cli.tradeoff.tradeoff_options import SCALE, number_option
from discreet.cli.tradeoff.tradeoff_output import PictureFile, show_tradeoff
from discreet.errors import InvalidInput

if TYPE_CHECKING:
    from discreet.planning.theory.kim_client_groups import Group


class GroupOption(NamedTuple):
    """One `--group` from the command line."""

    clients: int
    sampling_rate: float
    examples: int | None = None
    epsilon: float | None = None


class GroupParam(click.ParamType):  # type: ignore[type-arg]  # generic only from click 8.5 on
    """Parses CLIENTS:RATE[:EXAMPLES[:EPSILON]]; an empty field takes the default."""

    name = "group"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> GroupOption:
        fields = str(value).split(":")
        if not 2 <= len(fields) <= len(GroupOption._fields) or not all(fields[:2]):
            self.fail(f"must be CLIENTS:RATE[:EXAMPLES[:EPSILON]], and got {value!r}.", param, ctx)
        kinds = (COUNT, RATE, COUNT, SCALE)
        numbers = [
            kind.convert(field, param, ctx) if field else None for kind, field in zip(kinds, fields, strict=False)
        ]
        return GroupOption._make([*numbers, None, None][: len(kinds)])


Epsilon: TypeAlias = Annotated[float, number_option(SCALE, "E", "Epsilon promised to each example.")]
SamplingRate: TypeAlias = Annotated[
    float | None,
    number_option(RATE, "Q", "Rate at which each round samples a client's examples.", show_default="1e-3"),
]
Clients: TypeAlias = Annotated[
    int | None, number_option(COUNT, "K", "Number of clients, all with the same numbers.", show_default="100")
]
Examples: TypeAlias = Annotated[
    int | None, number_option(COUNT, "N", "Training examples of each client, for its expected batch.")
]
Groups: TypeAlias = Annotated[
    list[GroupOption] | None,
    number_option(
        GroupParam(),
        "K:Q[:N[:E]]",
        "K clients with sampling rate Q, N examples and epsilon E; repeat it for other groups, instead of --clients.",
        "--group",
    ),
]
GradientBound: TypeAlias = Annotated[float, number_option(SCALE, "G", "Largest norm of a gradient before clipping.")]
Step: TypeAlias = Annotated[float, number_option(SCALE, "S", "Step to which clients round what they send.")]


def ldp(
    epsilon: Epsilon = 1.0,
    delta: tradeoff_options.Delta = 1e-4,
    sampling_rate: SamplingRate = None,
    rounds: tradeoff_options.Rounds = 70_000,
    dimension: tradeoff_options.Dimension = 10_000,
    clients: Clients = None,
    examples: Examples = None,
    group: Groups = None,
    clip: tradeoff_options.GradientClip = 1.0,
    gradient_bound: GradientBound = 5.0,
    smoothness: tradeoff_options.Smoothness = 1.0,
    convexity: tradeoff_options.Convexity = 1.0,
    step: Step = 1.0,
    picture: PictureFile = None,
    as_json: Json = False,
) -> None:
    """Local noise: privacy, utility and bits (Kim et al. 2021).

    The noise that each of the paper's bounds asks for, and ours; the true epsilon of that noise; and the utility and
    bits that follow. The defaults are those of Kim, Günlü & Schaefer 2021.
    """
    from discreet.planning.curves.ldp_tradeoff import compute_ldp_tradeoff
    from discreet.planning.theory.kim_client_groups import Group
    from discreet.planning.theory.kim_noise_bounds import Promise
    from discreet.planning.theory.kim_utility import Learning

    if group and not (clients is None and sampling_rate is None):
        raise InvalidInput(
            "A --group names its clients and their rate.", fix="Leave --clients and --sampling-rate out."
        )
    promise = Promise(epsilon=epsilon, delta=delta, sampling_rate=sampling_rate or 1e-3, rounds=rounds)
    default = Group(clients=clients or 100, promise=promise, examples=examples)
    groups = tuple(_build_group(option, default) for option in group or ()) or (default,)
    if picture is not None and len(groups) > 1:
        raise InvalidInput("A picture shows clients with the same numbers only.", fix="Give one --group, or none.")
    learning = Learning(
        rounds=rounds,
        dimension=dimension,
        clip_norm=clip,
        gradient_bound=gradient_bound,
        smoothness=smoothness,
        convexity=convexity,
    )
    show_tradeoff(compute_ldp_tradeoff(groups, learning, step), picture, as_json=as_json)


def _build_group(option: GroupOption, default: "Group") -> "Group":
    """Fill in what the option leaves out."""
    epsilon = option.epsilon or default.promise.epsilon
    promise = replace(default.promise, sampling_rate=option.sampling_rate, epsilon=epsilon)
    return replace(default, clients=option.clients, promise=promise, examples=option.examples or default.examples)
