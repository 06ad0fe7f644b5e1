"""Server and nodes greet each other: who is there, and which code runs on each side."""

import json
from pathlib import Path

import pytest

from discreet.code_version import CodeVersion, read_code_version
from discreet.deploy import client_node
from discreet.deploy.deployed_run import DeployedRun
from discreet.engines.flower import client_calls, signed_messages
from discreet.secure_sums.secagg import key_agreement
from discreet.secure_sums.secagg.session_errors import BadMessage
from tests.deploy.example_sites import PLAIN, connect_nodes, copy_site

OTHER = CodeVersion("0.4.0", "7" * 40, True)

pytestmark = pytest.mark.usefixtures("one_thread")


def test_a_run_records_the_code_of_its_clients_and_says_nothing_if_all_run_the_same(tmp_path: Path) -> None:
    site, heard = copy_site(tmp_path, PLAIN), list[str]()
    outcome = DeployedRun(site, "first").train(connect_nodes(tmp_path, site, heard), heard.append)
    stamp = read_code_version().stamp
    assert [line["client_code"] for line in outcome.record.read_rounds()] == [[stamp]] * 3
    assert json.loads(outcome.record.read_text("guarantee.json"))["client_code"] == [stamp]
    assert not [line for line in heard if " runs discreet " in line]


@pytest.mark.parametrize(
    ("module", "line"),
    [
        (client_node, "The server runs {ours}; this node runs {other}."),
        (client_calls, "client-0 runs {ours}; this server runs {other}."),
    ],
)
def test_another_code_on_the_other_side_is_named_and_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: object, line: str
) -> None:
    monkeypatch.setattr(module, "read_code_version", lambda: OTHER)
    site, heard = copy_site(tmp_path, PLAIN), list[str]()
    outcome = DeployedRun(site, "first").train(connect_nodes(tmp_path, site, heard), heard.append)
    assert outcome.completed == 3
    assert line.format(ours=read_code_version(), other=OTHER) in heard


def test_the_signature_of_a_hello_covers_the_greeting_and_the_code() -> None:
    secret = key_agreement.random_bytes(key_agreement.KEY_BYTES)
    public = key_agreement.identity_key(secret)
    body = signed_messages.encode_greeting(b"n" * 32)
    hello = signed_messages.read_hello(signed_messages.encode_hello("run", 2, body, secret))
    assert (hello.client, hello.stamp) == (2, read_code_version().stamp)
    assert signed_messages.read_greeting(body) == read_code_version().stamp
    assert hello.is_proven("run", body, public)
    assert not hello._replace(stamp=OTHER.stamp).is_proven("run", body, public)
    assert not hello._replace(client=1).is_proven("run", body, public)
    assert not hello.is_proven("run", signed_messages.encode_greeting(b"m" * 32), public)
    assert not hello.is_proven("another run", body, public)


@pytest.mark.parametrize("answer", [b"", b"\x00" * 70, b"\x00" * 68 + b"\xff" * 8, b"\x00" * 68 + b"\x00" * 9])
def test_an_answer_that_is_no_hello_is_refused(answer: bytes) -> None:
    with pytest.raises(BadMessage):
        signed_messages.read_hello(answer)
