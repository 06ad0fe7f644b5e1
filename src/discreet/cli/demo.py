"""`discreet demo`: a tour of what works, in a few seconds and on your machine; nothing in it is hard-coded."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from discreet.cli.account.answer import Answer, solve
from discreet.cli.account.question import Question
from discreet.cli.output import Json, emit
from discreet.errors import BudgetRefused
from discreet.part import plain
from discreet.privacy.events import Event, GaussianNoise, PoissonSampled, Repeated
from discreet.privacy.release import Release

ROUNDS, RATE, EPSILON, DELTA = 60, 0.25, 2.0, 1e-4  # ten clients, one local step a round
NEXT = ("discreet account --help", "discreet ledger --help", "README.md")


@dataclass(frozen=True)
class Chapter:
    """One thing to see: what it is called in JSON, what it says there, and how it looks."""

    name: str
    title: str
    data: dict[str, Any]
    page: list[RenderableType]


def demo(as_json: Json = False) -> None:
    """See what works: an account, a plan, a guarantee card, a refusal."""
    emit(
        lambda: {chapter.name: chapter.data for chapter in _chapters()} | {"next": NEXT},
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
    cost = _ask(Question(sampling_rate=0.1, steps=1000), noise=1.0)
    yield Chapter(
        "account",
        "What does a mechanism cost? The tightest accountant is reported.",
        cost.data(),
        [
            "$ discreet account gaussian --noise-multiplier 1 --sampling-rate 0.1 \\\n"
            "      --steps 1000 --delta 1e-5\n",
            *cost.page(),
        ],
    )
    found = _ask(Question(sampling_rate=RATE, steps=ROUNDS, delta=DELTA, epsilon=EPSILON), noise=None)
    yield Chapter(
        "plan",
        f"How much noise keeps {ROUNDS} rounds at epsilon {EPSILON:g}?",
        found.data(),
        [
            f"$ discreet account gaussian --epsilon {EPSILON:g} --sampling-rate {RATE} \\\n"
            f"      --steps {ROUNDS} --delta {DELTA}\n",
            *found.page(),
        ],
    )
    noise = found.data()["noise_multiplier"]
    yield _card(noise)
    yield _refusal(noise)


def _ask(question: Question, noise: float | None) -> Answer:
    return solve(question, "noise_multiplier", noise, lambda z: GaussianNoise(noise_multiplier=z))


def _card(noise: float) -> Chapter:
    from discreet.privacy.guarantee import Guarantee

    guarantee = Guarantee.certify(
        _release(noise, ROUNDS),
        DELTA,
        assumptions=["The ten clients hold different examples, so the largest of their costs is the cost of all."],
    )
    return Chapter(
        "guarantee",
        "What may then be promised, to whom, and what may not?",
        plain(guarantee),
        [guarantee.words()],
    )


def _refusal(noise: float) -> Chapter:
    from discreet.privacy.ledger import Budget, Ledger

    budget = Budget(unit="example", relation="add_or_remove", view="server", epsilon=EPSILON, delta=DELTA)
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.create(Path(folder) / "ledger.jsonl", [budget])
        run = [_release(noise, ROUNDS)]
        ledger.commit(ledger.reserve("planned run", run), run)
        try:
            ledger.reserve("one more round", [_release(noise, 1)])
        except BudgetRefused as refused:
            return Chapter(
                "refusal",
                f"And one round more? The ledger has paid for {ROUNDS}, and refuses:",
                {"message": str(refused), "exit_code": refused.exit_code},
                [str(refused)],
            )
    raise AssertionError(f"the least noise that pays for {ROUNDS} rounds paid for one more")


def _release(noise: float, rounds: int) -> Release:
    """What one client's examples go through: DP-SGD on the client, one step a round, seen by the server."""
    step = PoissonSampled(sampling_rate=RATE, event=GaussianNoise(noise_multiplier=noise))
    event: Event = Repeated(count=rounds, event=step)
    return Release(unit="example", relation="add_or_remove", view="server", event=event)
