"""The certificates of a deployment stand up to the strict checks that Python makes from 3.13 on."""

import ssl
from pathlib import Path

from discreet.deploy.certificates import write_certificates


def shake_hands(server: ssl.SSLObject, client: ssl.SSLObject, wires: tuple[ssl.MemoryBIO, ...]) -> None:
    """Pass what each side writes to the other until both have finished."""
    from_server, to_server, from_client, to_client = wires
    waiting = [client, server]
    while waiting:
        for side in list(waiting):
            try:
                side.do_handshake()
                waiting.remove(side)
            except ssl.SSLWantReadError:
                pass
            to_server.write(from_client.read())
            to_client.write(from_server.read())


def test_a_client_with_strict_checks_accepts_the_server(tmp_path: Path):
    write_certificates(tmp_path, ["server.example", "127.0.0.1"])
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.tls.key")
    asking = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
    asking.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
    for host in ("server.example", "127.0.0.1"):
        to_server, from_server, to_client, from_client = (ssl.MemoryBIO() for _ in range(4))
        server = serving.wrap_bio(to_server, from_server, server_side=True)
        client = asking.wrap_bio(to_client, from_client, server_hostname=host)
        shake_hands(server, client, (from_server, to_server, from_client, to_client))
        assert client.getpeercert()
