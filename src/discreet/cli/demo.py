"""`discreet demo`: a tour that trains a private model on this machine; every number it shows is computed."""

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
from discreet.privacy.events import GaussianNoise, steps
from discreet.trust import Trust

if TYPE_CHECKING:
    from discreet.experiment.loop.outcome import Outcome

ROUNDS, RATE, EPSILON, DELTA = 100, 0.5, 2.0, 1e-4  # those of the built-in experiment, which is trained below
NEXT_STEPS = ("discreet init", "discreet run --help", "discreet plan --help", "README.md")


@dataclass(frozen=True)
class Chapter:
    """One part of the tour.

    Attributes:
        title: The question that it answers.
        data: What it adds to the JSON object.
        page: What it prints.
    """

    title: str
    data: dict[str, Any]
    page: list[RenderableType]


def demo(as_json: Json = False) -> None:
    """Train a private model on digits, and show its guarantee."""
    emit(
        lambda: {name: value for chapter in _chapters() for name, value in chapter.data.items()} | {"next": NEXT_STEPS},
        _page,
        as_json=as_json,
    )


def _page() -> Iterator[RenderableType]:
    for number, chapter in enumerate(_chapters(), start=1):
        yield Text(f"{number}. {chapter.title}", style="bold")
        yield ""
        yield from chapter.page
        yield ""
    yield "Where to go next: " + ", ".join(NEXT_STEPS)


def _chapters() -> Iterator[Chapter]:
    cost = _account_gaussian(Question(sampling_rate=0.1, steps=1000), noise=1.0)
    yield Chapter(
        "What does a mechanism cost? The tightest bound is reported.",
        {"account": cost.data()},
        [
            "$ discreet account gaussian --noise-multiplier 1 --sampling-rate 0.1 \\\n"
            "      --steps 1000 --delta 1e-5\n",
            *cost.page(),
        ],
    )
    noise = _account_gaussian(Question(sampling_rate=RATE, steps=ROUNDS, delta=DELTA, epsilon=EPSILON), noise=None)
    yield Chapter(
        f"How much noise do {ROUNDS} rounds need for epsilon {EPSILON:g}?",
        {"plan": noise.data()},
        [
            f"$ discreet account gaussian --epsilon {EPSILON:g} --sampling-rate {RATE} \\\n"
            f"      --steps {ROUNDS} --delta {DELTA}\n",
            *noise.page(),
        ],
    )
    trained = start_run(None, (), None, None, None, None, Trust.no_code(), quiet=not sys.stderr.isatty())
    yield _training_chapter(trained)
    yield _refusal_chapter(trained)


def _account_gaussian(question: Question, noise: float | None) -> Answer:
    return solve(question, "noise_multiplier", noise, lambda z: GaussianNoise(noise_multiplier=z))


def _training_chapter(trained: "Outcome") -> Chapter:
    """Show the built-in experiment as `discreet run` shows it: ten clients with digits, 100 rounds, the card."""
    from discreet import api
    from discreet.experiment.loop import run_guarantees

    page = api.write_page(trained.record.path)
    data = result_data(trained, page)
    return Chapter(
        "What does a model learn with this noise, and what is guaranteed to whom?",
        {"run": data, "guarantee": data["guarantees"][0]},
        ["$ discreet run\n", run_guarantees.card_text(list(trained.guarantees)), "", *describe_results(trained, page)],
    )


def _refusal_chapter(trained: "Outcome") -> Chapter:
    """Ask the ledger of the run for one round more than its budget allows."""
    from discreet.privacy.ledger import Ledger
    from discreet.privacy.release import Release

    assert trained.record.ledger_path is not None
    card = trained.guarantees[0]
    one_round = next(iter(steps(card.event)))  # every round has one step
    extra_round = Release(unit=card.unit, relation=card.relation, view=card.view, event=one_round)
    try:
        Ledger.open(trained.record.ledger_path).reserve("one more round", [extra_round])
    except BudgetRefused as refused:
        return Chapter(
            f"And one more round? The ledger has accounted for {trained.completed} rounds, and refuses:",
            {"refusal": {"message": str(refused), "exit_code": refused.exit_code}},
            [str(refused)],
        )
    raise AssertionError(f"the smallest noise for {trained.completed} rounds was enough for one more")
