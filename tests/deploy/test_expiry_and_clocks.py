"""Certificates that have expired and clocks that were wrong: who is told, and what to do."""

import json
import shutil
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from discreet.deploy import certificates
from discreet.deploy.certificates import check_certificates, write_certificates
from discreet.deploy.client_node import ClientNode, today
from discreet.deploy.policy import PolicyRefusal, period_name
from discreet.deploy.renewal import renew_certificate
from discreet.engines.flower import signed_messages
from discreet.errors import InvalidInput
from tests.deploy.example_sites import PLAIN, copy_site
from tests.deploy.node_requests import RequestCase, refusal, restart

pytestmark = pytest.mark.usefixtures("one_thread")
LATER = timedelta(days=3 * 365 + 1)


@pytest.fixture
def write_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[timedelta], Path]:
    """Write a server's certificates as if this long ago, and return their folder."""

    def write(ago: timedelta) -> Path:
        class Clock(datetime):
            @classmethod
            def now(cls, tz: object = None) -> "Clock":
                return cls.fromtimestamp(datetime.now(UTC).timestamp() - ago.total_seconds(), UTC)

        folder = tmp_path / "server"
        folder.mkdir()
        with monkeypatch.context() as patch:
            patch.setattr(certificates, "datetime", Clock)
            write_certificates(folder, ["127.0.0.1"])
        return folder

    return write


def test_a_server_whose_certificate_has_expired_does_not_start_and_says_what_to_do(
    write_at: Callable[[timedelta], Path],
) -> None:
    with pytest.raises(InvalidInput, match=r"ca\.crt has expired on \d{4}-\d\d-\d\d, by this machine's clock") as told:
        check_certificates(write_at(LATER))
    assert "discreet deploy renew" in told.value.fix


def test_an_expired_certificate_can_be_renewed(write_at: Callable[[timedelta], Path], tmp_path: Path) -> None:
    """The authority has expired as well, so it is renewed too."""
    expired, site = write_at(LATER), copy_site(tmp_path / "renewed", PLAIN)
    for path in expired.iterdir():
        shutil.copy(path, site.server)
    with pytest.raises(InvalidInput, match="has expired"):
        check_certificates(site.server)
    assert renew_certificate(site).is_new_authority
    check_certificates(site.server)
    assert (site.app / "ca.crt").read_bytes() == (site.server / "ca.crt").read_bytes()


def test_a_server_whose_clock_is_behind_its_certificate_says_so(write_at: Callable[[timedelta], Path]) -> None:
    with pytest.raises(
        InvalidInput, match=r"ca\.crt is valid from \d{4}-\d\d-\d\d on, and this machine's clock"
    ) as told:
        check_certificates(write_at(-timedelta(days=3)))
    assert told.value.fix == "Set the clock."


@contextmanager
def listen(folder: Path) -> Iterator[str]:
    """Listen with the certificates in this folder, and yield the address."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.crt", folder / "server.tls.key")
    with socket.create_server(("127.0.0.1", 0)) as door:

        def serve() -> None:
            while True:
                try:
                    plain, _ = door.accept()
                except OSError:
                    return
                with plain, suppress(OSError):  # the client does not accept the certificate
                    context.wrap_socket(plain, server_side=True).close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{door.getsockname()[1]}"
        door.shutdown(socket.SHUT_RDWR)
    thread.join(10)


@pytest.mark.filterwarnings("ignore:.verify=<str>. is deprecated:DeprecationWarning")  # flwr's call of httpx
@pytest.mark.parametrize(
    ("ago", "words"),
    [
        (LATER, r"has expired, by this machine's clock, which says \d{4}-\d\d-\d\d.*tell the server's operator"),
        (-timedelta(days=3), r"is not valid yet, by this machine's clock, which says \d{4}-\d\d-\d\d"),
    ],
)
def test_a_node_tells_its_owner_that_the_certificate_is_out_of_date_and_not_that_it_is_forged(
    tmp_path: Path, write_at: Callable[[timedelta], Path], ago: timedelta, words: str
) -> None:
    pytest.importorskip("flwr")
    from discreet.engines.flower.supernode import SuperLinkAddress, run_node

    folder = write_at(ago)
    certificates.write_node_key(tmp_path / "node.key")
    with listen(folder) as address:
        place = SuperLinkAddress(address, folder / "ca.crt", tmp_path / "node.key", wait=0.0)
        with pytest.raises(InvalidInput, match=words):
            run_node(place, lambda request: b"", lambda text: None)


def test_a_node_that_is_running_when_the_certificate_expires_says_so_once_and_waits() -> None:
    pytest.importorskip("flwr")
    import httpx
    from flwr.proto.node_pb2 import Node

    from discreet.engines.flower.supernode import ServerLink, SuperLinkAddress

    class ExpiredServer:
        def PullMessages(self, request: object) -> None:
            raise httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] certificate has expired (_ssl.c:1006)")

    said = list[str]()
    link = ServerLink(SuperLinkAddress("server:1", Path("ca.crt"), Path("node.key")), said.append)
    assert [link.messages(ExpiredServer(), Node(node_id=1)) for _ in range(2)] == [None, None]  # type: ignore[arg-type]
    (line,) = said
    assert line.startswith("The certificate of the server at server:1 has expired, by this machine's clock")


def answer_once(node: ClientNode, case: RequestCase, day: date) -> bytes:
    """Let the node answer the first round on this day. Returns the request for the second round."""
    _, _, _, about, body, key = case
    replace(node, day=lambda: day).answer(signed_messages.sign_request(about, body, key))
    return signed_messages.sign_request(replace(about, round=1), body, key)


def test_a_clock_that_was_ahead_is_told_with_a_remedy_that_keeps_what_was_spent(request_case: RequestCase) -> None:
    """A node that counted in the year 2099 would otherwise refuse until then."""
    folder, _, node, _, _, _ = request_case
    client, name = folder / "client-0", f"ledger-{period_name('year', today())}.jsonl"
    nextly = answer_once(node, request_case, date(2099, 1, 1))
    again = restart(node)
    with pytest.raises(PolicyRefusal, match=r"clock says .*, and this node has counted on 2099-01-01") as told:
        again.check_ready()
    assert told.value.fix == (
        "If this clock is behind, set it. If it is right and was ahead then, rename ledger-2099.jsonl to "
        f"{name}, so that what was spent stays counted, and delete counting.json beside policy.toml."
    )
    assert "this node has counted on 2099-01-01" in refusal(again, nextly)
    (client / "ledger-2099.jsonl").rename(client / name)
    (client / "counting.json").unlink()
    mended = restart(again)
    assert isinstance(signed_messages.read_reply(mended.answer(nextly)), bytes)
    assert mended.ledger.open_ledger(today()).summary()["releases"]["committed"] == 2
    assert json.loads((client / "counting.json").read_bytes())["day"] == today().isoformat()


def test_a_clock_that_was_ahead_after_this_periods_ledger_had_begun_is_told_what_that_costs(
    request_case: RequestCase,
) -> None:
    _, _, node, _, _, _ = request_case
    name = f"ledger-{period_name('year', today())}.jsonl"
    node.ledger.open_ledger(today())
    answer_once(node, request_case, date(2099, 1, 1))
    with pytest.raises(PolicyRefusal) as told:
        restart(node).check_ready()
    assert told.value.fix == (
        "If this clock is behind, set it. If it is right and was ahead then, delete counting.json beside policy.toml "
        f"when the period of {name} has ended: ledger-2099.jsonl counted what was spent in it too."
    )


def test_a_clock_that_was_ahead_within_the_period_takes_only_a_deleted_note(request_case: RequestCase) -> None:
    folder, _, node, _, _, _ = request_case
    nextly = answer_once(node, request_case, date(2026, 9, 1))
    again = replace(restart(node), day=lambda: date(2026, 3, 1))
    with pytest.raises(PolicyRefusal) as told:
        again.check_ready()
    assert told.value.fix == (
        "If this clock is behind, set it. If it is right and was ahead then, delete counting.json beside policy.toml."
    )
    (folder / "client-0" / "counting.json").unlink()
    assert isinstance(signed_messages.read_reply(again.answer(nextly)), bytes)
