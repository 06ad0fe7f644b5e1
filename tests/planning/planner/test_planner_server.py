"""The planner's server answers only requests from this machine that know its address."""

import json
from html.parser import HTMLParser
from http.client import HTTP_PORT, HTTPConnection, HTTPResponse
from socket import SHUT_WR, create_connection
from urllib.parse import quote

import pytest

from discreet.errors import InvalidInput
from discreet.part import to_plain
from discreet.planning.planner.planner_server import PlannerServer, open_planner
from tests.planning.planner.conftest import QUESTION, built_in_start


def ask_server(planner: PlannerServer, path: str, method: str = "GET", **headers: str) -> tuple[HTTPResponse, bytes]:
    connection = HTTPConnection("127.0.0.1", planner.server_port, timeout=60)
    connection.request(method, path, headers={"Host": f"127.0.0.1:{planner.server_port}", **headers})
    reply = connection.getresponse()
    content = reply.read()
    connection.close()
    return reply, content


def ask_question(planner: PlannerServer, question: object) -> tuple[int, dict[str, object]]:
    reply, content = ask_server(planner, f"/{planner.token}/answer?q={quote(json.dumps(question))}")
    return reply.status, json.loads(content)


def test_it_listens_on_this_machine_alone_under_a_name_that_cannot_be_guessed(planner: PlannerServer):
    assert planner.server_address[0] == "127.0.0.1"
    assert planner.url == f"http://127.0.0.1:{planner.server_port}/{planner.token}/"
    assert len(planner.token) >= 32  # 192 bits


def test_two_planners_have_two_names():
    with open_planner(built_in_start()) as one, open_planner(built_in_start()) as other:
        assert one.token != other.token
        assert one.server_port != other.server_port


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("", "text/html"),
        ("planner.js", "text/javascript"),
        ("planner.css", "text/css"),
    ],
)
def test_the_page_and_what_it_loads_are_there(planner: PlannerServer, name: str, kind: str):
    reply, content = ask_server(planner, f"/{planner.token}/{name}")
    assert (reply.status, reply.headers.get_content_type()) == (200, kind)
    assert content


@pytest.mark.parametrize(
    "path", ["/", "/{}", "/wrong/", "/wrong/answer", "/{}/../", "/{}/server.py", "/{}//", "/{}/a/b"]
)
def test_nothing_else_is_there(planner: PlannerServer, path: str):
    reply, content = ask_server(planner, path.format(planner.token))
    assert (reply.status, json.loads(content)) == (404, {"error": "There is nothing here."})


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1:1", "", "127.0.0.1.evil.example"]
)
def test_a_name_that_was_made_to_lead_here_is_refused(planner: PlannerServer, host: str):
    reply, _ = ask_server(planner, f"/{planner.token}/", Host=host)
    assert reply.status == 403


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ("GET * HTTP/1.1\r\nHost: {host}\r\n\r\n", 404),
        ("GET http://[ HTTP/1.1\r\nHost: {host}\r\n\r\n", 404),
        ("GET /{token}/ HTTP/1.1\r\n\r\n", 403),
        ("GET /{token}/ HTTP/1.1\r\nHost: {host}\r\nHost: evil.example\r\n\r\n", 403),
        ("nonsense\r\n\r\n", 400),
    ],
)
def test_what_no_browser_sends_is_refused_too(
    planner: PlannerServer, sent: str, status: int, capfd: pytest.CaptureFixture[str]
):
    with create_connection(("127.0.0.1", planner.server_port), timeout=60) as line:
        line.sendall(sent.format(host=f"127.0.0.1:{planner.server_port}", token=planner.token).encode())
        line.shutdown(SHUT_WR)
        reply = b"".join(iter(lambda: line.recv(4096), b""))
    assert (b"HTTP/1.1 %d" % status in reply) or (status == 400 and b"only answers to GET" in reply)
    assert capfd.readouterr().err == ""


def test_localhost_is_a_name_of_ours(planner: PlannerServer):
    assert ask_server(planner, f"/{planner.token}/", Host=f"localhost:{planner.server_port}")[0].status == 200


def test_a_browser_leaves_the_usual_port_out(planner: PlannerServer):
    port, path = planner.server_port, f"/{planner.token}/"
    planner.server_port = HTTP_PORT
    for host, status in {"127.0.0.1": 200, "localhost": 200, "127.0.0.1:80": 200, "evil.example": 403}.items():
        connection = HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", path, headers={"Host": host})
        assert connection.getresponse().status == status
        connection.close()
    planner.server_port = port


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE"])
def test_only_get_is_answered(planner: PlannerServer, method: str):
    reply, _ = ask_server(planner, f"/{planner.token}/", method)
    assert (reply.status, reply.headers["Allow"]) == (405, "GET")


@pytest.mark.parametrize("path", ["/{}/", "/{}/answer?q=x", "/wrong/"])
def test_every_reply_tells_the_browser_to_load_nothing_from_elsewhere(planner: PlannerServer, path: str):
    reply, _ = ask_server(planner, path.format(planner.token))
    policy = reply.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; ")
    assert "http" not in policy
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    assert reply.headers["Referrer-Policy"] == "no-referrer"
    assert reply.headers["Cache-Control"] == "no-store"
    assert "Python" not in reply.headers["Server"]


def test_a_question_has_its_answer(planner: PlannerServer):
    status, found = ask_question(planner, to_plain(QUESTION))
    assert (status, found["reason"]) == (200, "")
    assert set(found["curves"]) == {"epsilon", "noise", "noise_to_signal", "bytes"}  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": "1"}, "epsilon"),
        ({"delta": 1.5}, "delta"),
        ({"delta": 0.999}, "delta must be at most 0.1 here"),
        ({"clients": 10**9}, "clients must be at most"),
        ({"mechanism": "magic"}, "mechanism"),
        ({"more": 1}, "more"),
        ({"rounds": 2.5}, "rounds"),
        ({"epsilon": float("nan")}, "epsilon"),
    ],
)
def test_a_question_that_cannot_be_meant_is_refused_in_a_sentence(
    planner: PlannerServer, change: dict[str, object], said: str
):
    status, found = ask_question(planner, {**to_plain(QUESTION), **change})
    assert status == 400
    assert said in str(found["error"])


@pytest.mark.parametrize("fault", [ZeroDivisionError("float division by zero"), ValueError("math domain error")])
def test_a_fault_of_ours_is_said_in_a_sentence_and_the_next_question_is_answered(
    planner: PlannerServer, monkeypatch: pytest.MonkeyPatch, fault: Exception
):
    def fail(*_: object) -> None:
        raise fault

    with monkeypatch.context() as patched:
        patched.setattr("discreet.planning.planner.planner_server.answer_question", fail)
        status, found = ask_question(planner, to_plain(QUESTION))
    said = f"The planner failed to answer, which is a bug ({type(fault).__name__})."
    assert (status, found) == (500, {"error": said})
    assert ask_question(planner, to_plain(QUESTION))[0] == 200


@pytest.mark.parametrize("query", ["", "?", "?q=", "?q=%7B", "?p=1", "?q=[1]", "?q=" + "[" * 900, "?q=%00"])
def test_what_is_no_question_is_refused(planner: PlannerServer, query: str):
    reply, content = ask_server(planner, f"/{planner.token}/answer{query}")
    assert reply.status == 400
    assert json.loads(content)["error"]


def test_a_path_without_end_is_refused(planner: PlannerServer):
    assert ask_server(planner, f"/{planner.token}/answer?q={'1' * 5000}")[0].status == 403


def test_a_port_that_is_taken_is_said(planner: PlannerServer):
    with (
        pytest.raises(InvalidInput, match=f"Port {planner.server_port} can't be used"),
        open_planner(built_in_start(), planner.server_port),
    ):
        pass


class Form(HTMLParser):
    """The page's inputs, labels, and whatever it would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.inputs: list[dict[str, str | None]] = []
        self.labels: set[str | None] = set()
        self.loaded: list[str | None] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag in ("input", "select"):
            self.inputs.append(found)
        if tag == "label":
            self.labels.add(found["for"])
        self.loaded += [found[name] for name in ("src", "href") if name in found]


def test_every_input_has_a_label_and_nothing_is_loaded_from_elsewhere(planner: PlannerServer):
    form = Form(ask_server(planner, f"/{planner.token}/")[1].decode())
    assert {str(each["id"]) for each in form.inputs} >= set(to_plain(QUESTION))
    assert all(each["id"] in form.labels or each.get("aria-label") for each in form.inputs)
    outside = [address for address in form.loaded if not str(address).startswith("#")]  # others are inside a drawing
    assert outside == ["data:,", "page.css", "planner.css", "planner.js"]


def test_the_first_answer_is_on_the_page_itself_for_those_without_scripts(planner: PlannerServer):
    page, start = ask_server(planner, f"/{planner.token}/")[1].decode(), to_plain(planner.start.question)
    sections = ask_question(planner, start)[1]["sections"]
    assert set(sections) == {"verdict", "tiles", "charts"}  # type: ignore[call-overload]
    assert all(section in page for section in sections.values())  # type: ignore[attr-defined]
    assert page.count("<svg") == page.count("<table") == 4
    assert "<noscript><p>The sliders need JavaScript" in page


def test_the_page_and_all_that_it_loads_weigh_little(planner: PlannerServer):
    names = ("", "page.css", "planner.css", "planner.js")
    assert sum(len(ask_server(planner, f"/{planner.token}/{name}")[1]) for name in names) < 200_000


def test_the_page_starts_as_the_experiment_does_and_says_what_its_clients_have(planner: PlannerServer):
    text = ask_server(planner, f"/{planner.token}/")[1].decode()
    values = {each["id"]: each.get("value") for each in Form(text).inputs}
    assert (values["epsilon"], values["delta"], values["rounds"], values["examples"]) == ("2", "0.0001", "100", "144")
    assert "10 clients with 1,438 examples (from 143 to 144 each)" in text
