"""The status of a deployment as one HTML page for its operator, made of the report's pieces: it loads nothing."""

from collections.abc import Iterator

from discreet.deploy.deployment_status import DeploymentStatus, RunStatus
from discreet.privacy.wording import compact
from discreet.report.markup import Html, bullet_list, definition_list, join, table, tag
from discreet.report.page_sections import section
from discreet.report.run_page import html_page

FOOTER = (
    "Written by discreet deploy status, for those who run this server. The page names clients and what they refused, "
    "so it tells who took part: where a promise rests on the secrecy of that, show it to nobody else. Each client "
    "counts its own budget in its own ledger, which the server does not see."
)


def render_status(status: DeploymentStatus, time: str) -> str:
    """Return the page. `time` says when the status was read."""
    return html_page(f"Deployment at {status.address}", join(_body(status, time)))


def _body(status: DeploymentStatus, time: str) -> Iterator[Html]:
    mood = "bad" if status.clients is None else "good" if len(status.clients.online) == len(status.names) else "none"
    lines = [tag("p", line) for line in (status.headline, status.awaited) if line is not None]
    yield tag(
        "header",
        tag("p", f"Deployment · {time}", class_="eyebrow"),
        tag("h1", f"Deployment at {status.address}"),
        tag("div", *lines, class_=f"verdict {mood}", role="note", aria_label="Status"),
    )
    yield tag("main", _tiles(status), *_sections(status))
    yield tag("footer", tag("p", FOOTER))


def _tiles(status: DeploymentStatus) -> Html:
    online = "unknown" if status.clients is None else str(len(status.clients.online))
    tiles = [("clients online", online, f"of {len(status.names)}")]
    tiles.append(("runs", str(len(status.runs)), f"{sum(run.state == 'done' for run in status.runs)} done"))
    if (run := _current_run(status)) is not None:
        promised = "nothing is promised" if run.promised is None else f"of {compact(run.promised)} promised"
        tiles.append(("rounds", f"{run.rounds:,}", f"of {run.planned or 0:,}, run {run.name}"))
        tiles.append(("ε spent", run.budget.partition(" of ")[0], f"{promised}, run {run.name}"))
    return definition_list(((name, join([value, tag("small", note)])) for name, value, note in tiles), class_="tiles")


def _current_run(status: DeploymentStatus) -> RunStatus | None:
    """Return the run that goes on, else the last one."""
    going_on = [run for run in status.runs if run.state == "going on"]
    return next(iter([*going_on, *reversed(status.runs)]), None)


def _sections(status: DeploymentStatus) -> Iterator[Html]:
    states = {name: what for what, names in _client_lists(status) for name in names}
    rows = [(name, states.get(name, "unknown")) for name in status.names]
    yield section(
        "Clients", table("Clients of deployment.toml", ("client", "status"), rows, stacked=True, class_="stack")
    )
    if status.runs:
        runs = [(run.name, run.state, run.progress, run.budget) for run in status.runs]
        headings = ("run", "state", "rounds", "ε spent")
        yield section("Runs", table("All runs, and what each spent", headings, runs, stacked=True, class_="stack"))
    for run in status.runs:
        if run.problems:
            why = "Why the run stopped, why rounds were lost, and who refused and why."
            yield section(f"Problems of run {run.name}", tag("p", why), bullet_list(reversed(run.problems)))


def _client_lists(status: DeploymentStatus) -> list[tuple[str, list[str]]]:
    return [] if status.clients is None else list(status.clients._asdict().items())
