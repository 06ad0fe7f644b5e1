"""`discreet plan`: what an experiment will promise, and what that costs, before any training."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table

from discreet.cli.formatting import format_affordable_rounds, format_bytes, format_count
from discreet.cli.interactive_plan import PORT, serve_planner
from discreet.cli.options import DataDir
from discreet.cli.output import Json, emit
from discreet.cli.progress_bar import show_preparation
from discreet.cli.run import Set
from discreet.errors import InvalidInput
from discreet.part import from_plain
from discreet.privacy.release import describe_clients
from discreet.privacy.wording import compact, round_up

EPILOG = """\b
Examples:
  discreet plan
  discreet plan experiment.toml --set rounds=200
  discreet plan --interactive
"""

File: TypeAlias = Annotated[Path | None, typer.Argument(metavar="[FILE]", hidden=True)]
Interactive: TypeAlias = Annotated[
    bool, typer.Option("--interactive", help="Open a page on this machine with sliders; Ctrl-C ends it.")
]
Port: TypeAlias = Annotated[
    int | None, typer.Option(click_type=PORT, metavar="N", help="Where the page listens; default: a free one.")
]
NoBrowser: TypeAlias = Annotated[bool, typer.Option("--no-browser", help="Print the page's address, and open nothing.")]


def plan(
    file: File = None,
    settings: Set = None,
    data_dir: DataDir = None,
    interactive: Interactive = False,
    port: Port = None,
    no_browser: NoBrowser = False,
    as_json: Json = False,
) -> None:
    """What the experiment in FILE will promise, before any training.

    The guarantee, the noise it takes and how loud that is, the rounds it affords, the bytes that are sent, how much to
    do locally, and what another epsilon would cost. Data is read to count clients; nothing is trained, spent or
    written. Without FILE: the built-in experiment on digits.
    """
    from discreet.experiment import api
    from discreet.experiment.configuration import experiment_file
    from discreet.planning.experiment_plan import planned

    if not interactive and (port is not None or no_browser):
        raise InvalidInput("--port and --no-browser go with --interactive.")
    source = experiment_file.load_experiment(file, tuple(settings or ()), data_dir)
    with show_preparation(source, quiet=as_json) as ready:
        job = api.prepare_job(ready)
    if interactive:
        return serve_planner(job, port, browser=not no_browser, as_json=as_json)
    found = planned(source, job)
    run = _run_command("discreet run", file, settings or (), data_dir)
    return emit(lambda: found, lambda: _page(found, run), as_json=as_json)


def _run_command(name: str, file: Path | None, settings: Sequence[str], data_dir: Path | None) -> str:
    """What trains just what was planned, ready to be copied."""
    words = [] if file is None else [str(file)]
    words += [word for each in settings for word in ("--set", each)]
    words += [] if data_dir is None else ["--data-dir", str(data_dir)]
    return " ".join([name, *map(shlex.quote, words)])


def _page(found: dict[str, Any], run: str) -> Iterator[RenderableType]:
    yield (
        f"{format_count(found['rounds'], 'rounds')}, {format_count(found['clients'], 'clients')} with "
        f"{_describe_examples(found)}, about {found['expected_cohort']:,.4g} clients in a round"
    )
    yield (
        f"{found['parameters']:,} parameters: {format_bytes(found['bytes']['down'])} to a client and "
        f"{format_bytes(found['bytes']['up'])} back in a round ({found['bits']['up']:,} bits), "
        f"{_describe_traffic(found['bytes'])}"
    )
    if found["secure_sums"]:
        yield "these bytes leave out what secure aggregation sends beside the sums"
    if found["ring_bits"] is not None and found["wraparound"] is not None:
        yield (
            f"sums in a ring of {found['ring_bits']} bits: a chance of {round_up(found['wraparound'], 2)} at most "
            "that one of them leaves it, which would spoil the model and reveal nothing"
        )
    if found["noise_multiplier"] is not None:
        yield f"noise multiplier {compact(found['noise_multiplier'])}"
    if found["noise_to_signal"] is not None:
        ratio = compact(found["noise_to_signal"], 3)
        yield f"noise to signal in a round's mean: {ratio} at best, with all at the clip and agreed"
    yield ""
    yield _describe_promise(found)
    if found["by_client"]:
        yield ""
        yield Padding(_client_table(found["by_client"]), (0, 2))
    if found["other_epsilons"]:
        yield ""
        yield Padding(_other_epsilons_table(found), (0, 2))
    yield ""
    yield _describe_local_work(found["local_work"])
    for sentence in [*(f"Warning: {each}" for each in found["warnings"]), *found["advice"]]:
        yield ""
        yield sentence
    yield ""
    yield f"Nothing was trained or spent. To train: {run}"


def _describe_examples(found: dict[str, Any]) -> str:
    """Count the examples of all clients; where clients overlap, also say how many differ and how often one is held."""
    most, distinct = found["max_multiplicity"], found["distinct_examples"]
    if most == 1:
        return f"{found['examples']:,} examples"
    differing = "" if distinct is None else f"{distinct:,} distinct, "
    return f"{found['examples']:,} examples in total ({differing}each held by up to {most:,} clients)"


def _describe_traffic(sent: dict[str, int]) -> str:
    """A client that is drawn may be drawn every time, and as a rule isn't."""
    most, expected = format_bytes(sent["client_total"]), format_bytes(sent["client_expected"])
    one = f"{most} in all" if most == expected else f"at most {most} in all, {expected} expected"
    sure = "" if most == expected else " are expected to take"
    return f"{one}; all clients together{sure} {format_bytes(sent['all_down'])} and {format_bytes(sent['all_up'])} back"


def _describe_promise(found: dict[str, Any]) -> str:
    from discreet.privacy.guarantee import Guarantee

    if not found["guarantees"]:
        return "No privacy: this experiment adds no noise, so nothing is promised."
    card = from_plain(Guarantee, found["guarantees"][0])
    seeded = " The seed is written down, so this run protects nobody." if found["seeded"] else ""
    rounds = found["affordable_rounds"]
    affords = ""
    if rounds is not None:
        noun = "round" if rounds == 1 else "rounds"
        affords = f" Within the promise this noise affords {format_affordable_rounds(rounds)} {noun}."
    claimed = "".join(
        f" Claimed {claim.source}, and not certified: ε = {compact(claim.epsilon, 4)}." for claim in card.claims
    )
    certified = f"Certified: ε = {round_up(card.epsilon)} at δ = {compact(card.delta)}. {card.sentence()}"
    return f"{certified}{claimed}{affords}{seeded}"


def _describe_local_work(work: dict[str, Any]) -> str:
    now, best, unit = work["now"], work["recommended"], work["unit"]
    if best is None:
        return f"Local work: {format_count(now, unit)} a round. {work['why']}"
    return f"Local work: {format_count(best, unit)} a round recommended, now {now:,}. {work['why']}"


def _client_table(kinds: list[dict[str, Any]]) -> Table:
    table = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False)
    table.add_column("clients")
    for heading in ("rate", "clip", "noise", "rounds", "ε", "promised"):
        table.add_column(heading, justify="right")
    for kind in kinds:
        numbers = (kind["sampling_rate"], kind["clip_norm"], kind["noise_multiplier"])
        spent = "-" if kind["epsilon"] is None else round_up(kind["epsilon"])
        promised = "-" if kind["promised"] is None else compact(kind["promised"])
        whose = describe_clients(kind["clients"]).removeprefix("clients ").removeprefix("client ")
        shown = ("-" if each is None else compact(each, 4) for each in numbers)
        table.add_row(whose, *shown, f"{kind['rounds']:,}", spent, promised)
    return table


def _other_epsilons_table(found: dict[str, Any]) -> Table:
    table = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False)
    for heading in ("promised ε", "noise for all rounds", "or rounds at this noise"):
        table.add_column(heading, justify="right")
    for each in found["other_epsilons"]:
        noise = "-" if each["noise_multiplier"] is None else compact(each["noise_multiplier"], 4)
        table.add_row(compact(each["epsilon"]), noise, format_affordable_rounds(each["rounds_at_this_noise"]))
    return table
