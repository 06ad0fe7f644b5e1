"""The tables of the page: rows of ε, accountants, and clients one by one."""

import math
from collections.abc import Iterator
from itertools import accumulate

from discreet.planning.theory.kim_noise_bounds import noise_bound
from discreet.privacy.wording import round_up
from experiments.common.means import mean, mean_text
from experiments.tradeoffs import accountants
from experiments.tradeoffs.points import EPSILONS, PROMISES
from experiments.tradeoffs.row_results import RowResults


def alike(measured: RowResults, clipping: str) -> Iterator[str]:
    """ε, noise, utility and rate, of one way to clip."""
    minibatch = clipping == "minibatch"
    columns = "| ε | certified | σ² | noise sent, in C | η | test accuracy, % | test loss | noise alone | in a code |"
    yield f"{columns} at most |" + (" as printed |" if minibatch else "")
    yield "|---:|" + "---:|" * (10 if minibatch else 9)
    for epsilon in EPSILONS:
        row, plan = measured.row("alike", f"{clipping} {epsilon:g}"), measured.plan("alike", f"{clipping} {epsilon:g}")
        upload = plan.uploads(minibatch)[0]
        row_cells = [
            f"{epsilon:g}",
            round_up(max(plan.client_values("certified"))),
            _square(plan.client_values("noise_multiplier")[0]),
            f"{upload.deviation:.3g}",
            f"{row.rate:g}",
            mean_text(list(row.accuracy.values())),
            mean_text(list(row.loss.values()), 3),
            f"{upload.at_least():.2f}",
            mean_text(list(plan.code.values())),
            f"{upload.max_bits():.2f}",
            *([f"{upload.printed_bits():.2f}"] if minibatch else []),
        ]
        yield "| " + " | ".join(row_cells) + " |"
    yield ""


def accountant_table() -> Iterator[str]:
    """σ² by accountant."""
    yield "| ε | " + " | ".join(accountants.EPSILONS) + " |"
    yield "|---:|" + "---:|" * len(accountants.EPSILONS)
    for epsilon in EPSILONS:
        noises = [accountants.noise(name, epsilon) for name in accountants.EPSILONS]
        yield f"| {epsilon:g} | " + " | ".join(_square(noise) for noise in noises) + " |"
    yield ""


def papers() -> Iterator[str]:
    """σ² by the paper's bounds."""
    names = {"theorem1": "Theorem 1", "moments": "MA", "ac1": "AC1", "ac2": "AC2"}
    yield "| ε | " + " | ".join(names.values()) + " |"
    yield "|---:|" + "---:|" * len(names)
    for epsilon in EPSILONS:
        promise = accountants.PROMISE.with_epsilon(epsilon)
        yield (
            f"| {epsilon:g} | "
            + " | ".join(_square(noise_bound(name, promise).noise_variance ** 0.5) for name in names)
            + " |"
        )
    yield ""


def _square(noise: float) -> str:
    """σ² in four digits, and large ones in full."""
    if not math.isfinite(noise):
        return "none is enough"
    return f"{noise**2:.4g}" if noise < 100 else f"{noise**2:,.0f}"


def promises(measured: RowResults) -> Iterator[str]:
    """What is promised to whom, and what the federation gets from it."""
    yield "| promised | noise of the average, in C | η | test accuracy, % | test loss |"
    yield "|---|---:|---:|---:|---:|"
    for promise, epsilon in PROMISES.items():
        row, plan = measured.row("own", promise), measured.plan("own", promise)
        name = "each its own" if epsilon is None else f"everyone ε = {epsilon:g}, the {promise}"
        row_cells = [f"{plan.noise:.4f}", f"{row.rate:g}", mean_text(list(row.accuracy.values()))]
        yield f"| {name} | " + " | ".join([*row_cells, mean_text(list(row.loss.values()), 3)]) + " |"
    yield ""


def strictest(measured: RowResults) -> float:
    """The share of the average's noise variance that clients with the smallest ε bring, where each has its own."""
    plan = measured.plan("own", "own")
    certified, squares = plan.client_values("certified"), [noise**2 for noise in plan.client_values("noise_multiplier")]
    least = round(min(certified), 3)
    own = [square for square, epsilon in zip(squares, certified, strict=True) if round(epsilon, 3) == least]
    return sum(own) / sum(squares)


def clients(measured: RowResults) -> Iterator[str]:
    """Each client, with the ε that its own card says; examples of all seeds."""
    plan, asked = measured.plan("own", "own"), measured.plan("leaving", "leaving")
    yield "| client | examples | q_k | σ_k | certified ε_k | bits, at most | given noise: rounds | certified ε_k |"
    yield "|---:|---:|---:|---:|---:|---:|---:|---:|"
    everyone = len(plan.client_values("certified"))
    for client in range(everyone):
        bounds = [upload.max_bits() for upload in plan.uploads()[client::everyone]]
        row_cells = [
            f"{client}",
            ", ".join(str(line["examples"][client]) for line in plan.lines),
            f"{plan.client_values('sampling_rate')[client]:g}",
            f"{plan.client_values('noise_multiplier')[client]:.3f}",
            round_up(plan.client_values("certified")[client]),
            f"{mean(bounds).value:.2f}",
            f"{asked.client_values('rounds')[client]:g}",
            round_up(asked.client_values("certified")[client]),
        ]
        yield "| " + " | ".join(row_cells) + " |"
    yield ""


def departures(measured: RowResults) -> Iterator[str]:
    """Who leaves when, and how good the model is by then: at that round's best learning rate, and at the last one's."""
    lasts = [int(each) for each in measured.plan("leaving", "leaving").client_values("rounds")]
    end = max(lasts)
    best_row = measured.row("leaving", "leaving", after=end)
    yield "| after round | leaves | clients left | test accuracy, %, if it stopped here | on the way |"
    yield "|---:|---|---:|---:|---:|"
    rounds = sorted({each for each in lasts if each < end})
    gone = list(accumulate(lasts.count(each) for each in rounds))
    for after, so_far in zip([*rounds, end], [*gone, gone[-1] if gone else 0], strict=True):
        who = ", ".join(str(client) for client, each in enumerate(lasts) if each == after < end) or "–"
        stopped = measured.row("leaving", "leaving", after=after)
        on_the_way = measured.history("leaving", "leaving", best_row.rate)[after]
        best = f"{mean_text(list(stopped.accuracy.values()))} (η = {stopped.rate:g})"
        yield f"| {after} | {who} | {len(lasts) - so_far} | {best} | {mean_text(on_the_way)} (η = {best_row.rate:g}) |"
    yield ""
