"""`discreet demo`: a tour that trains a private model on your machine; nothing in it is hard-coded."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.text import Text

from discreet.cli.account.answer import Answer, solve
from discreet.cli.account.question import Question
from discreet.cli.output import Json, emit
from discreet.cli.run import describe_results, result_data, start_run
from discreet.errors import BudgetRefused
from discreet.privacy.events import Event, GaussianNoise, Repeated

if TYPE_CHECKING:
    from discreet.experiment.loop.outcome import Outcome

ROUNDS, RATE, EPSILON, DELTA = 100, 0.5, 2.0, 1e-4  # as in the built-in experiment, which is trained below
NEXT = ("discreet init", "discreet run --help", "discreet plan --help", "README.md")


@dataclass(frozen=True)
class Chapter:
    """One thing to see: what it says in JSON, under which names, and how it looks."""

    title: str
    data: dict[str, Any]
    page: list[RenderableType]


def demo(as_json: Json = False) -> None:
    """Train a private model on digits, and see what is promised."""
    emit(
        lambda: {name: value for chapter in _chapters() for name, value in chapter.data.items()} | {"next": NEXT},
        _page,
        as_json=as_json,
    )


def _page() -> Iterator[RenderableType]:
    for number, chapter in enumerate(_chapters(), start=1):
        yield Text(f"{number}. {chapter.title}", style="bold")
        yield ""
        yield from chapter.page
        yield ""
    yield "Where to go next: " + ", ".join(NEXT)


def _chapters() -> Iterator[Chapter]:
    cost = _account_gaussian(Question(sampling_rate=0.1, steps=1000), noise=1.0)
    yield Chapter(
        "What does a mechanism cost? The tightest accountant is reported.",
        {"account": cost.data()},
        [
            "$ discreet account gaussian --noise-multiplier 1 --sampling-rate 0.1 \\\n"
            "      --steps 1000 --delta 1e-5\n",
            *cost.page(),
        ],
    )
    found = _account_gaussian(Question(sampling_rate=RATE, steps=ROUNDS, delta=DELTA, epsilon=EPSILON), noise=None)
    yield Chapter(
        f"How much noise keeps {ROUNDS} rounds at epsilon {EPSILON:g}?",
        {"plan": found.data()},
        [
            f"$ discreet account gaussian --epsilon {EPSILON:g} --sampling-rate {RATE} \\\n"
            f"      --steps {ROUNDS} --delta {DELTA}\n",
            *found.page(),
        ],
    )
    trained = start_run(None, (), None, None, None, None, quiet=not sys.stderr.isatty())
    yield _training_chapter(trained)
    yield _refusal_chapter(trained)


def _account_gaussian(question: Question, noise: float | None) -> Answer:
    return solve(question, "noise_multiplier", noise, lambda z: GaussianNoise(noise_multiplier=z))


def _training_chapter(trained: "Outcome") -> Chapter:
    """The built-in experiment as `discreet run` runs it: digits of ten clients, 100 rounds, the card, the results."""
    from discreet.experiment import api
    from discreet.experiment.promise import run_guarantees

    page = api.write_page(trained.record.path)
    said = result_data(trained, page)
    return Chapter(
        "What is learned under it, and what may be promised to whom?",
        {"run": said, "guarantee": said["guarantees"][0]},
        ["$ discreet run\n", run_guarantees.card_text(list(trained.guarantees)), "", *describe_results(trained, page)],
    )


def _refusal_chapter(trained: "Outcome") -> Chapter:
    """The run's own ledger is asked for one round more than the promise pays for."""
    from discreet.privacy.ledger import Ledger
    from discreet.privacy.release import Release

    assert trained.record.ledger_path is not None
    card = trained.guarantees[0]
    more = Release(unit=card.unit, relation=card.relation, view=card.view, event=_one_round(card.event))
    try:
        Ledger.open(trained.record.ledger_path).reserve("one more round", [more])
    except BudgetRefused as refused:
        return Chapter(
            f"And one round more? The ledger has paid for {trained.completed}, and refuses:",
            {"refusal": {"message": str(refused), "exit_code": refused.exit_code}},
            [str(refused)],
        )
    raise AssertionError(f"the least noise that pays for {trained.completed} rounds paid for one more")


def _one_round(event: Event) -> Event:
    return event.event if isinstance(event, Repeated) else event
