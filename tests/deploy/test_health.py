"""/health and /metrics of a server and of a node: on loopback, with fixed fields, and nothing that reveals a draw."""

import http.client
import json
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from discreet.deploy.client_node import ClientNode, today
from discreet.deploy.health_server import Health, Metric, format_metrics, serve_health
from discreet.deploy.node_health import NodeHealth
from discreet.deploy.server_health import ServerHealth
from discreet.engines.flower import signed_messages
from discreet.errors import InvalidInput
from discreet.logs import get_log
from discreet.loopback_server import ADDRESS
from tests.deploy.example_sites import CENTRAL, PLAIN, copy_site
from tests.deploy.node_requests import RequestCase, refusal

SECONDS = 10.0
COMMON = {"discreet_info", "discreet_start_time_seconds", "discreet_certificate_expiry_seconds"}
OF_SERVER = COMMON | {
    "discreet_superlink_up",
    "discreet_clients_declared",
    "discreet_rounds_planned",
    "discreet_promised_epsilon",
    "discreet_runs",
    "discreet_rounds_played_total",
}
OF_NODE = COMMON | {"discreet_server_connected", "discreet_budget_epsilon"}
OF_PARTICIPATION = {
    "discreet_budget_spent_epsilon",
    "discreet_rounds_answered_total",
    "discreet_requests_refused_total",
    "discreet_requests_failed_total",
}
GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "operate.md"


def ask(port: int | None, path: str, method: str = "GET", host: str | None = None) -> tuple[int, str]:
    """Ask the page and return its status and its text."""
    assert port is not None
    connection = http.client.HTTPConnection(ADDRESS, port, timeout=SECONDS)
    try:
        connection.request(method, path, headers={} if host is None else {"Host": host})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def metric_names(text: str) -> set[str]:
    return {line.partition(" ")[0].partition("{")[0] for line in text.splitlines() if not line.startswith("#")}


def values(health: Health) -> dict[str, float]:
    return {metric.name: metric.value for metric in health.metrics}


def fine() -> Health:
    return Health(None, {"role": "server"}, [Metric("discreet_info", "One.", 1, {"role": 'a "server"'})])


def test_nothing_is_served_without_a_port() -> None:
    with serve_health(None, fine) as port:
        assert port is None


def test_the_page_is_bound_to_loopback_and_gone_when_the_command_ends() -> None:
    with serve_health(0, fine) as port:
        assert ask(port, "/health") == (200, '{"status": "ok", "role": "server"}\n')
    with pytest.raises(ConnectionRefusedError):
        ask(port, "/health")


def test_a_taken_port_is_refused_in_words() -> None:
    with socket.socket() as taken:
        taken.bind((ADDRESS, 0))
        taken.listen()
        with (
            pytest.raises(InvalidInput, match=r"The port \d+ can't be used for --health"),
            serve_health(taken.getsockname()[1], fine),
        ):
            pass


@pytest.mark.parametrize(
    ("path", "method", "host", "status"),
    [
        ("/", "GET", None, 404),
        ("/health/../metrics", "GET", None, 404),
        ("/metrics?x", "GET", None, 404),
        ("/health", "POST", None, 405),
        ("/health", "DELETE", None, 405),
        ("/metrics", "GET", "evil.example", 403),
    ],
)
def test_other_paths_methods_and_hosts_are_refused(path: str, method: str, host: str | None, status: int) -> None:
    with serve_health(0, fine) as port:
        assert ask(port, path, method, host)[0] == status


def test_a_failing_state_is_503_with_its_sentence_and_a_fault_tells_only_its_class() -> None:
    def fail() -> Health:
        raise ValueError("row 17 of north.csv")

    with serve_health(0, lambda: Health("The SuperLink is gone.", {}, [])) as port:
        status, text = ask(port, "/health")
        assert (status, json.loads(text)["problem"]) == (503, "The SuperLink is gone.")
    with serve_health(0, fail) as port:
        assert ask(port, "/health") == (500, '{"status": "unknown", "error": "ValueError"}\n')


def test_metrics_are_in_the_text_format_of_prometheus() -> None:
    metrics = [*fine().metrics, Metric("discreet_rounds_total", "Rounds.", 3), Metric("discreet_e", "E.", float("inf"))]
    assert format_metrics(metrics).splitlines() == [
        "# HELP discreet_info One.",
        "# TYPE discreet_info gauge",
        r'discreet_info{role="a \"server\""} 1',
        "# HELP discreet_rounds_total Rounds.",
        "# TYPE discreet_rounds_total counter",
        "discreet_rounds_total 3",
        "# HELP discreet_e E.",
        "# TYPE discreet_e gauge",
        "discreet_e +Inf",
    ]


@pytest.mark.parametrize("text", [PLAIN, CENTRAL])
def test_a_server_shows_a_fixed_list_that_names_no_client(tmp_path: Path, text: str) -> None:
    site = copy_site(tmp_path, text)
    run = site.run("first")
    run.mkdir(parents=True)
    (run / "run.json").write_text("{}")
    lines = [{"round": round, "clients": 2, "seconds": 1.5, "evaluation": {"loss": 0.123}} for round in (1, 2)]
    (run / "rounds.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with serve_health(0, ServerHealth(site, lambda: True).read) as port:
        _, shown = ask(port, "/metrics")
    assert metric_names(shown) == OF_SERVER
    assert "discreet_rounds_played_total 2\n" in shown
    assert 'discreet_runs{state="unfinished"} 1\n' in shown
    assert "client-" not in shown
    assert "0.123" not in shown


def test_a_server_without_its_superlink_or_its_process_is_failing(tmp_path: Path) -> None:
    site = copy_site(tmp_path, PLAIN)
    assert ServerHealth(site, lambda: True).read().problem == "The SuperLink takes no connections."
    assert ServerHealth(site, lambda: False).read().problem == "The server's process has ended."
    with socket.socket() as door:
        door.bind((ADDRESS, 0))
        door.listen()
        (site.server / "flower").mkdir()
        address = f"127.0.0.1:{door.getsockname()[1]}"
        (site.server / "flower/config.toml").write_text(f'[superlink.deployment]\naddress = "{address}"\n')
        assert ServerHealth(site, lambda: True).read().problem is None


def node_health(node: ClientNode) -> NodeHealth:
    return NodeHealth(node.client_folder.folder, node.policy, node.app.certificate, today)


def test_a_node_counts_answers_and_refusals_where_the_promise_is_against_the_server(request_case: RequestCase) -> None:
    _, _, node, about, body, key = request_case
    state = node_health(node)
    with state.listen():
        before = values(state.read())
        node.answer(signed_messages.sign_request(about, body, key))
        assert refusal(node, b"junk")
        after = values(state.read())
    assert set(before) == set(after) == OF_NODE | OF_PARTICIPATION
    assert [after[name] for name in sorted(OF_PARTICIPATION) if name.endswith("_total")] == [0, 1, 1]
    assert before["discreet_budget_spent_epsilon"] == 0 < after["discreet_budget_spent_epsilon"]
    assert after["discreet_budget_spent_epsilon"] <= after["discreet_budget_epsilon"]
    node.answer(b"junk")
    assert values(state.read()) == after  # nobody listens any more


def test_a_node_shows_nothing_of_its_rounds_where_the_promise_is_against_the_public(tmp_path: Path) -> None:
    copy_site(tmp_path, CENTRAL)
    node = ClientNode.open(tmp_path / "client-0", lambda line: None)
    state = node_health(node)
    with state.listen():
        before = format_metrics(state.read().metrics)
        for event in ("round answered", "request refused", "request failed"):
            get_log("discreet.deploy.client_node").info(event)
        assert format_metrics(state.read().metrics) == before
    assert metric_names(before) == OF_NODE
    node.close()


def test_a_node_is_healthy_while_its_server_is_away_and_says_so(request_case: RequestCase) -> None:
    state = node_health(request_case[2])
    with state.listen():
        seen = [state.read()]
        for event in ("node connected", "server is away", "server is back"):
            get_log("discreet.engines.flower.supernode").info(event)
            seen.append(state.read())
    assert [each.facts["connected"] for each in seen] == [False, True, False, True]
    assert all(each.problem is None for each in seen)


def test_the_events_that_a_node_is_judged_by_are_those_that_are_logged() -> None:
    package = Path(__file__).parents[2] / "src" / "discreet"
    sources = (package / "deploy/client_node.py", package / "engines/flower/supernode.py")
    logged = "".join(path.read_text() for path in sources)
    for event in ("round answered", "request refused", "request failed", "node connected", "server is back"):
        assert f'("{event}"' in logged
    assert '("server is away"' in logged


def test_the_guide_lists_every_metric() -> None:
    guide = GUIDE.read_text(encoding="utf-8")
    assert [name for name in sorted(OF_SERVER | OF_NODE | OF_PARTICIPATION) if f"`{name}`" not in guide] == []


def test_reading_the_ledger_is_not_up_to_the_reader_of_the_page(
    request_case: RequestCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, opened = node_health(request_case[2]), list[Path]()
    find: Callable[..., dict[str, Path]] = lambda folder, day: opened.append(folder) or {}  # noqa: E731
    monkeypatch.setattr("discreet.deploy.node_health.find_ledgers", find)
    for _ in range(3):
        state.read()
    assert len(opened) == 1
