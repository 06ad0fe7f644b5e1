"""Play many clients in one process: each has its own folder, keys, policy, ledger and connection, and a thread.

    python benchmarks/many_clients.py FOLDER...

Nothing is left out but the processes: 200 of them, with torch in each, need more memory than a small machine has.
Started by `load.py`, which reads the bytes that each process counted when it ends.
"""

import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from discreet.deploy.client_node import ClientNode
from discreet.engines.flower.supernode import SuperLinkAddress, run_node

READY = "All clients are connected."


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    folders = [Path(name) for name in sys.argv[1:]]
    traffic, connected = Traffic(), threading.Semaphore(0)
    for folder in folders:
        node = ClientNode.open(folder, _say)
        deployment, key = node.app.deployment, folder / "node.key"
        place = SuperLinkAddress(deployment.address, node.app.certificate, key, nodes=len(deployment.clients))
        arguments = (place, traffic.count(node.answer), _announce(connected))
        threading.Thread(target=run_node, args=arguments, daemon=True).start()
    for _ in folders:
        connected.acquire()
    print(READY, flush=True)
    try:
        threading.Event().wait()
    finally:
        print(f"Received {traffic.received} sent {traffic.sent}", flush=True)


@dataclass
class Traffic:
    """Counts the bytes of requests and replies, without what Flower and TLS add."""

    received: int = 0
    sent: int = 0
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def count(self, answer: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
        """Count what this client receives and sends. The clients of a process train one after the other."""

        def count_answer(request: bytes) -> bytes:
            with self._turn:
                reply = answer(request)
                self.received += len(request)
                self.sent += len(reply)
                return reply

        return count_answer


def _announce(connected: threading.Semaphore) -> Callable[[str], None]:
    def say(text: str) -> None:
        _say(text)
        if text.startswith("Connected to"):
            connected.release()

    return say


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main()
