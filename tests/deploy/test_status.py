"""`discreet deploy status`: clients, runs, spending and who refused; as text, as JSON, as a page, again and again."""

import json
import re
import stat
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from discreet.cli import main as cli
from discreet.cli.deploy import status_command
from discreet.deploy import superlink
from discreet.deploy.deployment_folder import DeploymentFolder
from discreet.deploy.deployment_status import read_status
from discreet.deploy.entry_points import main
from discreet.deploy.online_clients import ClientStatus
from discreet.deploy.run_refusals import ClientRefusal, read_refusals, record_refusals
from discreet.deploy.status_page import render_status
from discreet.errors import InvalidInput
from tests.deploy.example_sites import PLAIN, connect_nodes, copy_site, edit_policy

pytestmark = pytest.mark.usefixtures("one_thread")
NODES = [{"node-id": "17", "status": "online"}, {"node-id": "18", "status": "offline"}]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DeploymentFolder:
    """A deployment whose server is up, with one client online, one away and one that nobody knows."""
    made = copy_site(tmp_path, PLAIN)
    (made.server / "nodes.json").write_text(json.dumps({"client-0": "17", "client-1": "18"}))
    monkeypatch.setattr(superlink, "list_nodes", lambda root: NODES)
    return made


@pytest.fixture
def site_with_run(site: DeploymentFolder, tmp_path: Path) -> DeploymentFolder:
    """The same after a run in which client-2 refused every round."""
    edit_policy(tmp_path / "client-2", "minimum_cohort = 2", "minimum_cohort = 9")
    heard = list[str]()
    wire = connect_nodes(tmp_path, site, heard)
    main(lambda *_: wire, {"folder": str(site.folder), "name": "first"}, heard.append)
    return site


def test_a_run_shows_its_rounds_its_budget_and_who_refused_and_why(site_with_run: DeploymentFolder) -> None:
    lines = list(read_status(site_with_run).lines())
    assert lines[:4] == [
        "The server at 127.0.0.1:1 is up; 1 of 3 clients are online.",
        "  online: client-0",
        "  away: client-1",
        "  unknown: client-2",
    ]
    assert lines[4].startswith("  run first: 3 rounds, done, ε ")
    assert lines[4].endswith(" of 4")
    assert [line.partition(": ")[0] for line in lines[5:]] == [f"    client-2 refused round {n}" for n in (1, 2, 3)]
    assert "The policy asks for sums of at least 9 clients" in lines[5]


def test_the_node_of_a_client_that_was_revoked_counts_for_nobody(
    site: DeploymentFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    (site.server / "nodes.json").write_text(
        json.dumps({"revoked": "16", **{f"client-{n}": f"{17 + n}" for n in range(3)}})
    )
    monkeypatch.setattr(
        superlink, "list_nodes", lambda root: [{"node-id": str(number), "status": "online"} for number in range(16, 20)]
    )
    assert read_status(site).headline == "The server at 127.0.0.1:1 is up; 3 of 3 clients are online."


def test_a_server_that_does_not_answer_is_named_with_the_command_that_starts_it(
    site: DeploymentFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(superlink, "list_nodes", lambda root: None)
    assert read_status(site).headline == (
        f"The server at 127.0.0.1:1 does not answer. Start it with: discreet deploy server {site.folder}"
    )


@pytest.mark.parametrize("inside", ["app", "server/runs"])
def test_a_folder_inside_a_deployment_is_refused_with_the_deployments_name(
    site: DeploymentFolder, monkeypatch: pytest.MonkeyPatch, inside: str
) -> None:
    (site.server / "runs").mkdir(exist_ok=True)
    with pytest.raises(InvalidInput) as refused:
        status_command.open_deployment(site.folder / inside)
    assert refused.value.fix == f"Name {site.folder} instead."
    monkeypatch.chdir(site.folder.parent)
    with pytest.raises(
        InvalidInput, match=rf"^site/{inside} is not .* inside the deployment site\. Name site instead\."
    ):
        status_command.open_deployment(Path("site", inside))


def test_a_long_problem_stays_below_its_run(site: DeploymentFolder, capsys: pytest.CaptureFixture[str]) -> None:
    run = site.run("first")
    run.mkdir(parents=True)
    (run / "run.json").write_text("{}")
    record_refusals(site.refusals_file("first"), print)(f"client-0 refused round 1: {'It is spent. ' * 20}")
    capsys.readouterr()
    cli.run(["deploy", "status", str(site.folder)])
    lines = capsys.readouterr().out.splitlines()
    assert len(rest := lines[-4:]) == 4
    assert rest[0].startswith("    client-0 refused")
    assert all(re.match("      [a-zA-Z]", line) for line in rest[1:])


def test_only_the_owner_can_read_who_refused(site_with_run: DeploymentFolder) -> None:
    assert stat.S_IMODE(site_with_run.refusals_file("first").stat().st_mode) == 0o600


def test_json_is_one_object_with_the_keys_of_before_and_the_refusals(
    site_with_run: DeploymentFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["deploy", "status", str(site_with_run.folder), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["clients"] == {"online": ["client-0"], "away": ["client-1"], "unknown": ["client-2"]}
    (run,) = told["runs"]
    assert (run["name"], run["rounds"], run["planned"], run["finished"], run["promised"]) == ("first", 3, 3, True, 4.0)
    assert 0 < run["epsilon"] <= run["promised"]
    assert [refusal["what"] for refusal in run["refusals"]] == ["round 1", "round 2", "round 3"]


def test_a_run_that_goes_on_is_told_from_one_that_was_killed(site_with_run: DeploymentFolder) -> None:
    (site_with_run.run("first") / "guarantee.json").unlink()
    site_with_run.end_file("first").unlink()
    assert [run.state for run in read_status(site_with_run).runs] == ["not done"]
    with site_with_run.lock_run("first"):
        assert [run.state for run in read_status(site_with_run).runs] == ["going on"]


def test_a_run_that_ended_with_an_error_says_which(site_with_run: DeploymentFolder) -> None:
    (site_with_run.run("first") / "guarantee.json").unlink()
    site_with_run.end_file("first").write_text(json.dumps({"error": "Too few clients came.", "exit_code": 1}))
    assert "    Too few clients came." in list(read_status(site_with_run).lines())


def test_text_shows_the_last_problems_and_how_many_more_there_are(site: DeploymentFolder) -> None:
    run = site.run("first")
    run.mkdir(parents=True)
    (run / "run.json").write_text("{}")
    say = record_refusals(site.refusals_file("first"), print)
    for round in range(1, 8):
        say(f"client-0 refused round {round}: No.")
    lines = list(read_status(site).lines())[-6:]
    assert lines == ["    2 more in --json and --page", *(f"    client-0 refused round {n}: No." for n in range(3, 8))]


def test_watching_shows_the_status_again_and_ctrl_c_ends_it_with_0(
    site: DeploymentFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    waits: Iterator[None] = iter((None, None))
    waited = list[float]()

    def pause(seconds: float) -> None:
        waited.append(seconds)
        if next(waits, "over") == "over":
            raise KeyboardInterrupt

    monkeypatch.setattr(status_command, "pause", pause)
    assert cli.run(["deploy", "status", str(site.folder), "--watch", "--every", "2"]) == 0
    shown = capsys.readouterr()
    assert shown.out.count("1 of 3 clients are online") == 3
    assert len(re.findall(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", shown.out, re.MULTILINE)) == 3
    assert waited == [2, 2, 2]
    assert shown.err == ""


def test_watching_goes_on_while_the_server_is_away(
    site: DeploymentFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = iter((None, NODES))
    monkeypatch.setattr(superlink, "list_nodes", lambda root: next(answers))

    def pause(seconds: float) -> None:
        if "is up" in (shown := capsys.readouterr().out):
            raise KeyboardInterrupt
        assert "does not answer" in shown

    monkeypatch.setattr(status_command, "pause", pause)
    assert cli.run(["deploy", "status", str(site.folder), "--watch"]) == 0


def test_watching_and_json_are_refused_together(site: DeploymentFolder, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["deploy", "status", str(site.folder), "--watch", "--json"]) == 2
    assert "--json prints one object, and --watch many pages." in capsys.readouterr().err


def test_the_page_says_the_same_and_loads_nothing(
    site_with_run: DeploymentFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "status.html"
    assert cli.run(["deploy", "status", str(site_with_run.folder), "--page", str(file)]) == 0
    assert f"Wrote {file}" in capsys.readouterr().err
    page = file.read_text(encoding="utf-8")
    for words in ("1 of 3 clients are online", "client-2 refused round 3", "at least 9 clients", "ε spent"):
        assert words in page
    for loading in ("<script", "src=", "http://", "https://", "url("):
        assert loading not in page
    assert "default-src 'none'" in unescape(page)


def test_what_a_client_says_is_text_on_the_page_and_not_markup(site: DeploymentFolder) -> None:
    run = site.run("first")
    run.mkdir(parents=True)
    (run / "run.json").write_text("{}")
    record_refusals(site.refusals_file("first"), print)("client-0 refused round 1: <script>alert(1)</script>")
    assert "<script>alert" not in render_status(read_status(site), "today")


def test_refusals_are_kept_as_they_were_said_and_other_lines_are_not(tmp_path: Path) -> None:
    file, heard = tmp_path / "refusals", list[str]()
    say = record_refusals(file, heard.append)
    lines = [
        "round 1 of 5, 3 clients, 5.58 s",
        "north, south refused the sum of moments: The budget is spent. Keep the model.",
        "A node refused to say who it is: The policy does not allow the algorithm.",
        "north is left out of the rounds after round 1: it dealt shares that nobody can use.",
    ]
    for line in lines:
        say(line)
    assert heard == lines
    assert [str(refusal) for refusal in read_refusals(file)] == lines[1:]
    with file.open("a") as torn:
        torn.write('{"time": "2026')
    assert len(read_refusals(file)) == 3
    assert read_refusals(tmp_path / "none") == []
    assert isinstance(read_refusals(file)[0], ClientRefusal)


@pytest.mark.parametrize(
    "line",
    [
        "north runs discreet 0.3. south refused round 2: its budget is spent; this server runs discreet 0.3.0.",
        "Ignored what north sent: The message has south refused round 2: its budget is spent.",
        "north can't take part. south is left out of the rounds after round 1: it lied.",
    ],
)
def test_a_line_that_quotes_a_client_never_passes_for_anothers_refusal(tmp_path: Path, line: str) -> None:
    record_refusals(tmp_path / "refusals", print)(line)
    assert read_refusals(tmp_path / "refusals") == []


MANY = [f"client-{number}" for number in range(200)]
FEW = "client-0, client-1, client-2, client-3, client-4 and 195 others"


def test_many_clients_that_refuse_are_all_recorded_and_a_few_are_printed(tmp_path: Path) -> None:
    file, heard = tmp_path / "refusals", list[str]()
    record_refusals(file, heard.append)(f"{', '.join(MANY)} refused round 1: It is spent.")
    (refusal,) = read_refusals(file)
    assert refusal.who.split(", ") == MANY
    assert heard == [str(refusal)] == [f"{FEW} refused round 1: It is spent."]


def test_of_many_clients_the_status_names_a_few(site: DeploymentFolder) -> None:
    status = replace(read_status(site), clients=ClientStatus(online=[], away=MANY, unknown=MANY[:12]))
    assert list(status.lines())[1:3] == [f"  away: {FEW}", f"  unknown: {', '.join(MANY[:12])}"]


def test_a_run_goes_on_when_refusals_cannot_be_written(tmp_path: Path) -> None:
    heard = list[str]()
    record_refusals(tmp_path / "missing" / "refusals", heard.append)("north refused round 1: No.")
    assert heard == ["north refused round 1: No."]
