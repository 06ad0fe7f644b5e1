"""`discreet plan`: show what an experiment will guarantee, and what that costs, before any training."""

from collections.abc import Iterator
from typing import Annotated, Any, TypeAlias

import typer
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table

from discreet.cli.experiment_options import ExperimentOptions
from discreet.cli.interactive_plan import PORT, serve_planner
from discreet.cli.options import expand_records, number_option
from discreet.cli.output import Json, emit
from discreet.cli.text_table import text_table
from discreet.cli.trust_options import TrustOption
from discreet.errors import InvalidInput
from discreet.part import from_plain
from discreet.privacy.release import list_clients
from discreet.privacy.wording import compact, round_up
from discreet.report.number_format import format_bytes, format_count

EPILOG = """\b
Examples:
  discreet plan
  discreet plan experiment.toml --set rounds=200
  discreet plan --interactive
"""

Interactive: TypeAlias = Annotated[
    bool, typer.Option("--interactive", help="Open a page with sliders on this machine, until Ctrl-C.")
]
Port: TypeAlias = Annotated[int | None, number_option(PORT, "N", "Port of the interactive page.", default="a free one")]
NoBrowser: TypeAlias = Annotated[
    bool, typer.Option("--no-browser", help="Only print the address of the interactive page.")
]


@expand_records
def plan(
    experiment: ExperimentOptions,
    interactive: Interactive = False,
    port: Port = None,
    no_browser: NoBrowser = False,
    trust: TrustOption = False,
    as_json: Json = False,
) -> None:
    """Show what the experiment in FILE will guarantee and cost.

    Shows the guarantee, the noise that it needs, the noise-to-signal ratio, the affordable rounds, the bytes sent, how
    much local work to do, and what another epsilon would cost. The data is read to count clients; nothing is trained,
    spent or written. Python code that FILE names runs only with --trust: without it, a plan leaves out what depends on
    a model of your own. Without FILE, the command plans the built-in experiment on digits.
    """
    from discreet.planning.experiment_plan import plan_experiment

    if not interactive and (port is not None or no_browser):
        raise InvalidInput("--port and --no-browser need --interactive.")
    source, terms, advice = experiment.prepare(trusted=trust, quiet=as_json)
    if interactive:
        return serve_planner(source, terms, port, browser=not no_browser, as_json=as_json)
    data = plan_experiment(source, terms, advice)
    return emit(lambda: data, lambda: _page(data, experiment.run_command()), as_json=as_json)


def _page(plan: dict[str, Any], command: str) -> Iterator[RenderableType]:
    yield (
        f"{format_count(plan['rounds'], 'rounds')}, {format_count(plan['clients'], 'clients')} with "
        f"{_describe_examples(plan)}, about {plan['expected_cohort']:,.4g} clients in a round"
    )
    yield from plan["unknown"]
    if plan["bytes"] is not None:
        yield (
            f"{plan['parameters']:,} parameters: a client receives {format_bytes(plan['bytes']['down'])} and sends "
            f"{format_bytes(plan['bytes']['up'])} in a round ({plan['bits']['up']:,} bits), "
            f"{_describe_traffic(plan['bytes'])}"
        )
    if plan["secure_sums"]:
        yield "The bytes that secure aggregation sends besides the sums are not counted"
    if plan["ring_bits"] is not None and plan["wraparound"] is not None:
        yield (
            f"Sums in a ring of {plan['ring_bits']} bits: the probability that one overflows is at most "
            f"{round_up(plan['wraparound'], 2)}; that would spoil the model and reveal nothing"
        )
    if plan["noise_multiplier"] is not None:
        yield f"Noise multiplier {compact(plan['noise_multiplier'])}"
    if plan["noise_to_signal"] is not None:
        ratio = compact(plan["noise_to_signal"], 3)
        best_case = "at best (every update at the clip, all in the same direction)"
        yield f"Noise to signal of a round's mean: {ratio} {best_case}"
    yield ""
    yield _describe_promise(plan)
    if plan["by_client"]:
        yield ""
        yield Padding(_client_table(plan["by_client"]), (0, 2))
    if plan["other_epsilons"]:
        yield ""
        yield Padding(_other_epsilons_table(plan), (0, 2))
    yield ""
    yield _describe_local_work(plan["local_work"])
    for sentence in [*(f"Warning: {warning}" for warning in plan["warnings"]), *plan["advice"]]:
        yield ""
        yield sentence
    yield ""
    yield f"Nothing was trained or spent. To train: {command}"


def _describe_examples(plan: dict[str, Any]) -> str:
    """Count the examples of all clients; where clients overlap, also say how many differ and how often one is held."""
    most, distinct = plan["max_multiplicity"], plan["distinct_examples"]
    if most == 1:
        return f"{plan['examples']:,} examples"
    differing = "" if distinct is None else f"{distinct:,} distinct, "
    return f"{plan['examples']:,} examples in total ({differing}each held by up to {most:,} clients)"


def _describe_traffic(sent: dict[str, int]) -> str:
    """Describe the traffic of the whole run; with sampling, both the largest possible and the expected one."""
    most, expected = format_bytes(sent["client_total"]), format_bytes(sent["client_expected"])
    one = f"{most} in the whole run" if most == expected else f"at most {most} in the whole run, {expected} expected"
    receive = "receive" if most == expected else "are expected to receive"
    down, up = format_bytes(sent["all_down"]), format_bytes(sent["all_up"])
    return f"{one}; all clients together {receive} {down} and send {up}"


def _describe_promise(plan: dict[str, Any]) -> str:
    from discreet.planning.experiment_plan import explain_bound, state_bound  # heavy, and loaded by now
    from discreet.planning.other_promises import format_affordable_rounds
    from discreet.privacy.guarantee import Guarantee

    if not plan["guarantees"]:
        return "No privacy: this experiment adds no noise, or none that its parts declare, so nothing is promised."
    card = from_plain(Guarantee, plan["guarantees"][0])
    seeded = " The experiment has a seed, so this run protects nobody." if plan["seeded"] else ""
    rounds = plan["affordable_rounds"]
    affords = ""
    if rounds is not None:
        noun = "round" if rounds == 1 else "rounds"
        affords = f" Within the promise, this noise affords {format_affordable_rounds(rounds)} {noun}."
    return f"{state_bound(card)} {explain_bound(card)}{affords}{seeded}"


def _describe_local_work(work: dict[str, Any]) -> str:
    now, best, unit = work["now"], work["recommended"], work["unit"]
    if best is None:
        return f"Local work: {format_count(now, unit)} per round. {work['why']}"
    return f"Local work: {format_count(best, unit)} per round recommended, now {now:,}. {work['why']}"


def _client_table(groups: list[dict[str, Any]]) -> Table:
    numbers = ("rate", "clip", "noise", "rounds", "ε", "promised")
    table = text_table("clients", *numbers, right=numbers)
    for group in groups:
        settings = (group["sampling_rate"], group["clip_norm"], group["noise_multiplier"])
        spent = "-" if group["epsilon"] is None else round_up(group["epsilon"])
        promised = "-" if group["promised"] is None else compact(group["promised"])
        cells = ("-" if value is None else compact(value, 4) for value in settings)
        table.add_row(list_clients(group["clients"]), *cells, f"{group['rounds']:,}", spent, promised)
    return table


def _other_epsilons_table(plan: dict[str, Any]) -> Table:
    from discreet.planning.other_promises import format_affordable_rounds  # heavy, and loaded by now

    headings = ("promised ε", "noise for all rounds", "or rounds at this noise")
    table = text_table(*headings, right=headings)
    for row in plan["other_epsilons"]:
        noise = "-" if row["noise_multiplier"] is None else compact(row["noise_multiplier"], 4)
        table.add_row(compact(row["epsilon"]), noise, format_affordable_rounds(row["rounds_at_this_noise"]))
    return table
