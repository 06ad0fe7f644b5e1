"""`discreet tradeoff ldp`: privacy, utility and bits of local noise (Kim, Günlü & Schaefer 2021)."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import click

from discreet.cli.options import COUNT, RATE, number_option
from discreet.cli.tradeoff import tradeoff_options
from discreet.cli.tradeoff.tradeoff_options import SCALE, build_record
from discreet.errors import InvalidInput
from discreet.planning.curves.tradeoff import Tradeoff

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


@dataclass(frozen=True, kw_only=True)
class LdpOptions:
    """Local noise: privacy, utility and bits (Kim and others, 2021).

    The noise that each of the paper's bounds asks for, and ours; the true epsilon of that noise; and the utility and
    bits that follow. The defaults are those of Kim, Günlü & Schaefer 2021.
    """

    epsilon: Annotated[float, number_option(SCALE, "E", "Epsilon promised to each example.")] = 1.0
    delta: tradeoff_options.Delta = 1e-4
    sampling_rate: Annotated[
        float | None,
        number_option(RATE, "Q", "Rate at which each round samples a client's examples.", default="1e-3"),
    ] = None
    rounds: tradeoff_options.Rounds = 70_000
    dimension: tradeoff_options.Dimension = 10_000
    clients: Annotated[
        int | None, number_option(COUNT, "K", "Number of clients, all with the same numbers.", default="100")
    ] = None
    examples: Annotated[
        int | None, number_option(COUNT, "N", "Training examples of each client, for its expected batch.")
    ] = None
    group: Annotated[
        list[GroupOption] | None,
        number_option(
            GroupParam(),
            "K:Q[:N[:E]]",
            "K clients with sampling rate Q, N examples and epsilon E; repeat it for other groups, instead of "
            "--clients.",
        ),
    ] = None
    clip_norm: tradeoff_options.GradientClip = 1.0
    gradient_bound: Annotated[float, number_option(SCALE, "G", "Largest norm of a gradient before clipping.")] = 5.0
    smoothness: tradeoff_options.Smoothness = 1.0
    convexity: Annotated[float, number_option(SCALE, "M", "Strong convexity constant of the loss.")] = 1.0
    step: Annotated[float, number_option(SCALE, "S", "Step to which clients round what they send.")] = 1.0

    def compute(self) -> Tradeoff:
        from discreet.planning.curves.ldp_tradeoff import compute_ldp_tradeoff
        from discreet.planning.theory.kim_client_groups import Group
        from discreet.planning.theory.kim_noise_bounds import Promise
        from discreet.planning.theory.kim_utility import Learning

        if self.group and not (self.clients is None and self.sampling_rate is None):
            raise InvalidInput(
                "A --group names its clients and their rate.", fix="Leave --clients and --sampling-rate out."
            )
        promise = build_record(Promise, self, sampling_rate=self.sampling_rate or 1e-3)
        default = Group(clients=self.clients or 100, promise=promise, examples=self.examples)
        groups = tuple(_build_group(option, default) for option in self.group or ()) or (default,)
        return compute_ldp_tradeoff(groups, build_record(Learning, self), self.step)


def _build_group(option: GroupOption, default: "Group") -> "Group":
    """Fill in what the option leaves out."""
    epsilon = option.epsilon or default.promise.epsilon
    promise = replace(default.promise, sampling_rate=option.sampling_rate, epsilon=epsilon)
    return replace(default, clients=option.clients, promise=promise, examples=option.examples or default.examples)
