"""An experiment with even clients, a question with a quick answer, and a server that answers it."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from threading import Thread
from typing import Any

import pytest

from discreet import api
from discreet.experiment.configuration import experiment_file
from discreet.planning.planner.planner_server import PlannerServer, open_planner
from discreet.planning.planner.slider_answer import answer_question
from discreet.planning.planner.slider_question import Question
from discreet.planning.planner.slider_start import StartPosition, start_position

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


@lru_cache(maxsize=1)
def built_in_start() -> StartPosition:
    """The planner's start for the built-in experiment, whose clients have 143 or 144 examples each."""
    source = experiment_file.load_experiment()
    return start_position(source, api.prepare_job(source).terms)


def answer(question: Question, **options: Any) -> dict[str, Any]:
    """Answer a question that starts from the built-in experiment."""
    return answer_question(built_in_start(), question, **options)


@contextmanager
def serve_planner(start: StartPosition) -> Iterator[PlannerServer]:
    """Run a planner that answers from its own thread."""
    with open_planner(start) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def planner() -> Iterator[PlannerServer]:
    with serve_planner(built_in_start()) as server:
        yield server
