"""A small search, and what tests need to play it."""

from pathlib import Path

from discreet.experiment.tuning import composed_search, random_search, search_card
from discreet.experiment.tuning.search_files import SearchFiles, digest_experiment
from discreet.experiment.tuning.trial_jobs import TrialBuilder
from discreet.randomness.streams import RunKey
from discreet.trust import Trust
from tests.small_experiment import SMALL

TUNE = """
[tune]
epsilon = 9.0
trials = 3
candidates = 4

[tune.space]
"algorithm.learning_rate" = { low = 0.5, high = 8.0, log = true }
"""
ROUNDS = 2


def write_file(folder: Path, tune: str = TUNE, **changes: tuple[str, str]) -> Path:
    text = SMALL.replace("rounds = 4", f"rounds = {ROUNDS}").replace(
        "clients = 3 }", "clients = 3, validation_fraction = 0.2 }"
    )
    for before, after in changes.values():
        assert before in text
        text = text.replace(before, after)
    file = folder / "search.toml"
    file.write_text(text + tune)
    return file


def make_builder(file: Path, *overrides: str) -> TrialBuilder:
    return TrialBuilder(file, overrides, None, Trust.all_code(), RunKey.from_seed(0))


class Watcher:
    """Keeps what it is told, and raises `error` in round `at` (counted from 1 over all trials)."""

    def __init__(self, at=None, error=KeyboardInterrupt):
        self.rounds, self.trials, self.at, self.error = 0, [], at, error

    def begin_trial(self, number, settings, job):
        return self._round

    def _round(self, line):
        self.rounds += 1
        if self.rounds == self.at:
            raise self.error

    def finish_trial(self, trial):
        self.trials.append(trial)


def compose(file: Path, out: Path, *overrides: str, ledger: Path | None = None, watcher=None):
    """Play a search that counts every trial, as the command does. Return its plan, its end and its cards."""
    builder, files = make_builder(file, *overrides), SearchFiles(out)
    identity = files.find(digest_experiment(builder.read({}).text), ledger)
    plan = composed_search.plan_search(builder, builder.read_tune(), files, ledger)
    files.create(identity)
    with files.lock():
        composed_search.create_ledger(plan)
        search = composed_search.ComposedSearch(builder, plan, files, identity, None, watcher or Watcher())
        end = search.run()
        cards = search_card.write_search_card(builder, plan, end.trials, files.best)
    return plan, end, cards


def draw(file: Path, out: Path, trials: int, *overrides: str, ledger: Path | None = None):
    """Play a random search with this number of trials, as the command does. Return its plan and its winner."""
    builder = make_builder(file, "tune.mode=random", *overrides)
    plan = random_search.plan_search(builder, lambda *_: None, ledger)
    path = random_search.open_ledger(plan, out, ledger)
    return plan, random_search.run_search(builder, plan, out, path, draw=lambda: trials)
