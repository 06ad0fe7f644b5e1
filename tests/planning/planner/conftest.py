"""A question with a quick answer, and a server that answers it."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import pytest

from discreet.planning.planner.planner_server import PlannerServer, open_planner
from discreet.planning.planner.slider_question import Question
from discreet.planning.planner.slider_start import StartPosition

QUESTION = Question(
    mechanism="local_gaussian",
    view="server",
    epsilon=2.0,
    delta=1e-5,
    clients=50,
    sampling_rate=0.2,
    rounds=20,
    local_steps=3,
    dimension=1000,
    examples=200,
)


@contextmanager
def serve_planner(question: Question) -> Iterator[PlannerServer]:
    """Run a planner that answers from its own thread."""
    with open_planner(StartPosition(question, "")) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def planner() -> Iterator[PlannerServer]:
    with serve_planner(QUESTION) as server:
        yield server
