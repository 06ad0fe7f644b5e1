"""A comparison: its cells, the data they share, and results equal to those of `discreet run`."""

import json
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from discreet import api
from discreet.data.dirichlet_partition import Dirichlet
from discreet.data.features.feature_task import Features
from discreet.data.tasks.digits import Digits
from discreet.data.tasks.merged_splits import MergedSplits
from discreet.data.tasks.mnist import Mnist
from discreet.data.tasks.task_loading import load_task
from discreet.errors import BudgetRefused, InvalidInput
from discreet.experiment.comparison import cells, comparison
from discreet.experiment.comparison.cells import CellRun
from discreet.experiment.comparison.comparison import DataCache
from discreet.experiment.comparison.comparison_results import Result, ResultsFile
from discreet.experiment.configuration import experiment_file
from discreet.experiment.loop import training_loop
from discreet.experiment.run_directory.run_files import RoundRecord
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import RunKey
from discreet.trust import Trust
from tests.data.tasks.test_mnist import small as small_mnist

LEARNING = "algorithm.learning_rate"


class Watcher:
    """Counts the calls of its methods, and may act in a round."""

    def __init__(self, act: Callable[[CellRun, int], None] = lambda run, round: None) -> None:
        self.act, self.rounds, self.done = act, 0, list[str]()

    def round(self, run: CellRun, line: RoundRecord) -> None:
        self.rounds += 1
        self.act(run, line["round"])

    def finish_run(self, run: CellRun, result: Result) -> None:
        self.done.append(run.label)


def two(small: Path, seeds: int = 2) -> list[CellRun]:
    return cells.list_runs(cells.expand_cells([small], [(LEARNING, ["1", "4"])]), seeds)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a=1,2,4", ["1", "2", "4"]),
        ("a=[1,2],[3]", ["[1,2]", "[3]"]),
        ('a={kind = "poisson", rate = 0.1}, everyone', ['{kind = "poisson", rate = 0.1}', "everyone"]),
        ('a="x,y",z', ['"x,y"', "z"]),
    ],
)
def test_a_sweep_is_split_where_its_values_end(text: str, values: list[str]):
    assert cells.parse_sweep(text) == ("a", values)


@pytest.mark.parametrize("text", ["rounds", "=1,2", "rounds=", "rounds=1,,2", "rounds=2,2"])
def test_a_sweep_that_means_nothing_is_refused(text: str):
    with pytest.raises(InvalidInput, match="--sweep"):
        cells.parse_sweep(text)


def test_cells_are_every_file_with_every_combination(small: Path):
    other = small.with_name("other.toml")
    other.write_text(small.read_text())
    found = cells.expand_cells(
        [small, other], [("rounds", ["1", "2"]), ("privacy.epsilon", ["1", "3"])], ("dtype=float64",)
    )
    assert [cell.label for cell in found][:4] == [
        "small, rounds=1, privacy.epsilon=1",
        "small, rounds=1, privacy.epsilon=3",
        "small, rounds=2, privacy.epsilon=1",
        "small, rounds=2, privacy.epsilon=3",
    ]
    assert len(found) == 8
    last = found[-1].source.experiment
    assert last.privacy is not None
    assert (last.rounds, last.privacy.epsilon, last.dtype) == (2, 3, "float64")


def test_files_of_one_name_are_told_apart_by_their_folders(small: Path):
    twin = small.parent / "twin" / "small.toml"
    twin.parent.mkdir()
    twin.write_text(small.read_text())
    assert [cell.name for cell in cells.expand_cells([small, twin])] == [str(small), str(twin)]


def test_what_cannot_be_read_is_said_with_the_name_of_its_cell(small: Path):
    with pytest.raises(InvalidInput, match=r"^small, rounds=ten: rounds: must be a whole number"):
        cells.expand_cells([small], [("rounds", ["1", "ten"])])
    with pytest.raises(InvalidInput, match=r"^small, algorithm.epohcs=1: .*did you mean 'epochs'"):
        cells.expand_cells([small], [("algorithm.epohcs", ["1"])])
    with pytest.raises(InvalidInput, match="neither set nor swept"):
        cells.expand_cells([small], [], ("seed=3",))
    with pytest.raises(InvalidInput, match="there twice"):
        cells.expand_cells([small, small])


def test_a_plan_refuses_the_cell_that_breaks_its_promise(small: Path):
    asked = cells.list_runs(cells.expand_cells([small], [("algorithm.noise_multiplier", ["5", "0.1"])]), 1)
    with pytest.raises(BudgetRefused, match=r"^small, algorithm.noise_multiplier=0.1: .* and 2 is promised"):
        comparison.plan_comparison(asked, DataCache(), lambda *_: None)


def test_a_run_gives_what_discreet_run_gives(small: Path, tmp_path: Path):
    results = ResultsFile(tmp_path / "out")
    assert comparison.run_comparison(two(small), results, DataCache(), Watcher())
    kept = {(each["swept"][LEARNING], each["seed"]): each for each in results.read_by_key().values()}
    assert sorted(kept) == [("1", 0), ("1", 1), ("4", 0), ("4", 1)]
    for rate, seed in kept:
        job = api.prepare_job(experiment_file.load_experiment(small, (f"{LEARNING}={rate}", f"seed={seed}")))
        ended = training_loop.start(job, tmp_path / f"run-{rate}-{seed}", None, None, lambda line: None)
        found = kept[rate, seed]
        assert found["metrics"] == ended.metrics
        assert (found["epsilon"], found["unit"], found["against"]) == (ended.guarantees[0].epsilon, "example", "server")
        assert [line["round"] for line in found["history"]] == [2, 4]
        assert found["history"][-1]["accuracy"] == ended.metrics["accuracy"]


def test_data_is_read_once_for_all_runs_that_share_it(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    loads, load = [], Digits.load
    monkeypatch.setattr(Digits, "load", lambda *given: loads.append(1) or load(*given))
    asked, data = two(small), DataCache()
    comparison.plan_comparison(asked, data, lambda *_: None)
    comparison.run_comparison(asked, ResultsFile(tmp_path / "out"), data, Watcher())
    assert len(loads) == 2  # the digits are split by the seed, so once for each seed


def test_a_data_set_is_read_once_however_it_is_dealt_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    paths, reads, examples = small_mnist(tmp_path, monkeypatch), [], Mnist.examples
    monkeypatch.setattr(Mnist, "examples", lambda *given: reads.append(1) or examples(*given))
    data, built_in = DataCache(), experiment_file.load_experiment()
    for clients in (2, 3):
        for seed in (0, 1):
            task = Mnist(clients=clients, partition=Dirichlet(alpha=1.0))
            source = replace(built_in, experiment=replace(built_in.experiment, task=task), paths=paths)
            shared, key = data.load_task(source, RunKey.from_seed(seed)), RunKey.from_seed(seed)
            alone = load_task(task, key.generator(Purpose.TASK), paths)
            assert shared.train.sizes == alone.train.sizes
            index = torch.arange(sum(alone.train.sizes))
            assert all(map(torch.equal, shared.train.examples_at(index), alone.train.examples_at(index)))
    assert len(reads) == 1 + 4  # ours, and those of the tasks that loaded alone


def test_features_and_merged_splits_have_the_clients_of_their_data_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    paths, built_in = small_mnist(tmp_path, monkeypatch), experiment_file.load_experiment()
    paths = replace(paths, cache=tmp_path / "cache")
    for task in (Features(of=Mnist(clients=3)), MergedSplits(of=Mnist(clients=3), test_fraction=0.2)):
        source = replace(built_in, experiment=replace(built_in.experiment, task=task), paths=paths)
        assert len(DataCache().load_task(source, RunKey.from_seed(0)).train.sizes) == 3


def test_a_key_changes_with_what_decides_the_numbers_and_with_nothing_else(small: Path):
    def key(*overrides: str, seed: int = 0) -> str:
        return cells.list_runs(cells.expand_cells([small], [], overrides), seed + 1)[-1].key

    same = {key(), key("device=cpu"), key("checkpoint_every=2")}
    assert len(same) == 1
    others = {key(seed=1), key("rounds=5"), key("privacy.epsilon=1"), key("model.kind=mlp"), key("dtype=float64")}
    assert len(others - same) == 5


def test_a_key_changes_with_the_users_own_files(small: Path):
    code = small.with_name("mine.py")
    code.write_text("def mine(outputs, targets): return 0.0")

    def key() -> str:
        grid = cells.expand_cells([small], [], ("metric=mine.py:mine",), trust=Trust.all_code())
        return cells.list_runs(grid, 1)[0].key

    before = key()
    assert key() == before
    code.write_text("def mine(outputs, targets): return 1.0")
    assert key() != before


def test_an_interrupt_stops_after_the_round_keeps_what_is_done_and_the_rest_goes_on(small: Path, tmp_path: Path):
    def interrupt(run: CellRun, round: int) -> None:
        if run.seed == 1 and round == 2:
            os.kill(os.getpid(), signal.SIGINT)

    asked, results, first = two(small), ResultsFile(tmp_path / "out"), Watcher(interrupt)
    assert not comparison.run_comparison(asked, results, DataCache(), first)
    assert (len(first.done), first.rounds) == (2, 2 * 4 + 2)
    missing = [each for each in asked if each.key not in results.read_by_key()]
    assert [each.seed for each in missing] == [1, 1]
    assert comparison.run_comparison(missing, results, DataCache(), Watcher())
    assert len(results.read_by_key()) == 4


def test_a_line_that_a_killed_writer_left_unfinished_goes(tmp_path: Path):
    results = ResultsFile(tmp_path)
    results.path.write_bytes(b'{"key": "a"}\n{"key": "b"')
    assert set(results.read_by_key()) == {"a"}
    with results.lock():
        results.append({"key": "c"})
    assert [json.loads(line)["key"] for line in results.path.read_text().splitlines()] == ["a", "c"]


def test_two_comparisons_cannot_write_into_one_folder_at_once(tmp_path: Path):
    with (
        ResultsFile(tmp_path).lock(),
        pytest.raises(InvalidInput, match="another process"),
        ResultsFile(tmp_path).lock(),
    ):
        pass


def test_a_folder_that_holds_something_else_is_refused(tmp_path: Path):
    (tmp_path / "thesis.tex").write_text("years")
    with pytest.raises(InvalidInput, match=r"holds no results\.jsonl"):
        ResultsFile(tmp_path).check_folder()
    (tmp_path / "results.jsonl").write_text("my own notes\n")
    ResultsFile(tmp_path).check_folder()
    with pytest.raises(InvalidInput, match=r"Line 1 of .* can't be read"):
        ResultsFile(tmp_path).read_by_key()
