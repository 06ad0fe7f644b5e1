"""A page for monitoring, on this machine only: `GET /health` for a supervisor, `GET /metrics` for Prometheus.

It is off unless its owner names a port. What it shows is a fixed list (docs/guides/operate.md): nothing that was
computed from data, and nothing about who took part in which round where a promise rests on that secret.
"""

import json
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Literal

from discreet.errors import InvalidInput
from discreet.loopback_server import LoopbackHandler, LoopbackServer

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True)
class Metric:
    """One number for Prometheus. A counter's name ends in _total."""

    name: str
    help: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> Literal["counter", "gauge"]:
        return "counter" if self.name.endswith("_total") else "gauge"


@dataclass(frozen=True)
class Health:
    """The state of a server or a node.

    Attributes:
        problem: What is wrong, in one sentence; None if all is well. `GET /health` then answers 503 instead of 200.
        facts: What `GET /health` answers beside the status.
        metrics: What `GET /metrics` answers.
    """

    problem: str | None
    facts: Mapping[str, str | bool]
    metrics: Sequence[Metric]


def format_metrics(metrics: Sequence[Metric]) -> str:
    """Write metrics in the text format of Prometheus. Metrics of one name must follow each other."""
    lines, last = list[str](), ""
    for metric in metrics:
        if metric.name != last:
            lines += [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} {metric.kind}"]
        last = metric.name
        labels = ",".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in metric.labels.items())
        lines.append(f"{metric.name}{f'{{{labels}}}' if labels else ''} {_format_value(metric.value)}")
    return "".join(f"{line}\n" for line in lines)


def _format_value(value: float) -> str:
    return f"{value:+}".title() if math.isinf(value) else repr(value)


@contextmanager
def serve_health(port: int | None, read_health: Callable[[], Health]) -> Iterator[int | None]:
    """Serve the page in a thread while the block lasts, and yield its port; without a port, serve nothing.

    Args:
        port: The port on loopback. 0 chooses a free one, None switches the page off.
        read_health: Returns the state. It is called for each request, by one thread at a time.

    Raises:
        InvalidInput: The port can't be used.
    """
    if port is None:
        yield None
        return
    try:
        server = HealthServer(port, read_health)
    except (OSError, OverflowError) as error:
        raise InvalidInput(
            f"The port {port} can't be used for --health ({getattr(error, 'strerror', None) or error}).",
            fix="Name a free port between 1024 and 65535.",
        ) from None
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class HealthServer(LoopbackServer):
    """Listens on loopback and reads the state for each request."""

    block_on_close = False  # a silent connection must not keep the command from ending

    def __init__(self, port: int, read_health: Callable[[], Health]) -> None:
        self._read_health, self._reading = read_health, threading.Lock()
        super().__init__(port, HealthHandler)

    def health(self) -> Health:
        with self._reading:
            return self._read_health()


class HealthHandler(LoopbackHandler):
    """Answers two paths, and logs nothing."""

    server: HealthServer
    timeout = 10  # seconds until a silent connection is closed

    def answer(self) -> None:
        """Answer with the state, or with the metrics."""
        if not self.host_is_ours():  # another web page could read this one by DNS rebinding
            return self.send_json(HTTPStatus.FORBIDDEN, {"error": "This is not an address of this page."})
        if self.path not in ("/health", "/metrics"):
            return self.send_json(HTTPStatus.NOT_FOUND, {"error": "There are /health and /metrics here."})
        try:
            health = self.server.health()
        except Exception as error:  # noqa: BLE001 - its text may be about files or data: only the class is told
            error_class = type(error).__name__
            return self.send_json(HTTPStatus.INTERNAL_SERVER_ERROR, {"status": "unknown", "error": error_class})
        if self.path == "/metrics":
            return self.send_content(HTTPStatus.OK, METRICS_TYPE, format_metrics(health.metrics).encode())
        if health.problem is None:
            return self.send_json(HTTPStatus.OK, {"status": "ok", **health.facts})
        status = HTTPStatus.SERVICE_UNAVAILABLE
        return self.send_json(status, {"status": "failing", "problem": health.problem, **health.facts})
