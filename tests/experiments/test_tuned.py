"""Settings are chosen on validation data alone: what is held out, how they are chosen, and the page of choices."""

from pathlib import Path
from typing import Any

import pytest
import torch

from discreet.data.federation import Federation
from discreet.data.tasks.task import Task
from discreet.experiment.comparison.cells import Cell
from discreet.experiment.configuration import experiment_file
from experiments.fedsam import cells
from experiments.tuned import families, fedsam, fu, heikkila, page
from experiments.tuned.families import Family
from experiments.tuned.validation import hold_out


@pytest.fixture
def task() -> Task:
    inputs = torch.arange(30.0)[:, None]
    train = Federation(inputs, torch.zeros(30, dtype=torch.int64), (10, 5), order=torch.arange(29, 14, -1))
    test = (torch.full((4, 1), -1.0), torch.zeros(4, dtype=torch.int64))
    return Task("small", train, *test, kind="classification", classes=2, client_names=("a", "b"))


def client_inputs(task: Task, client: int) -> set[float]:
    start, size = task.train.starts[client], task.train.sizes[client]
    return set(task.train.examples_at(torch.arange(start, start + size))[0].flatten().tolist())


def test_a_fifth_of_each_clients_training_examples_is_held_out_and_no_test_example_is_seen(task: Task):
    smaller = hold_out(task)
    assert smaller.train.sizes == (8, 4)
    validation = set(smaller.test_inputs.flatten().tolist())
    assert -1.0 not in validation
    for client in (0, 1):
        kept, before = client_inputs(smaller, client), client_inputs(task, client)
        assert kept < before
        assert before - kept <= validation
    assert len(validation) == 3


def family(*names: str, each_seed_chooses: bool = False) -> Family:
    source = experiment_file.load_experiment(cells.HERE / "dp_fedavg.toml")
    return Family(("small",), tuple(Cell("small", {"knob": name}, source) for name in names), each_seed_chooses)


def result_line(knob: str, seed: int, accuracy: float) -> dict[str, Any]:
    return {"name": "small", "swept": {"knob": knob}, "seed": seed, "metrics": {"accuracy": accuracy}}


def test_the_best_on_validation_data_is_chosen_once_all_were_tried():
    tried = family("1", "2")
    assert tried.choose([result_line("1", 0, 0.5)], seed=2) is None
    chosen = tried.choose([result_line("1", 0, 0.5), result_line("2", 0, 0.6)], seed=2)
    assert chosen is tried.cells[1]


def test_where_each_seed_has_its_own_test_examples_each_chooses_for_itself():
    tried = family("1", "2", each_seed_chooses=True)
    found = [result_line(knob, seed, 0.5 + 0.1 * (seed == int(knob))) for knob in "12" for seed in (0, 1, 2)]
    assert tried.choose(found, seed=1) is tried.cells[0]
    assert tried.choose(found, seed=2) is tried.cells[1]
    assert len(tried.validation_runs()) == 6
    assert len(family("1", "2").validation_runs()) == 2


def test_only_what_was_chosen_is_told():
    tried = family("1", "2")
    validated = [result_line("1", 0, 0.5), result_line("2", 0, 0.6)]
    final = [result_line("1", 0, 0.9), result_line("2", 0, 0.7), result_line("2", 1, 0.8)]
    told = tried.reported_results(validated, final)
    assert {seed: each["metrics"]["accuracy"] for seed, each in told.items()} == {0: 0.7, 1: 0.8}


def test_all_but_the_claim_promise_what_they_are_compared_at():
    for each in heikkila.families():
        promises = {cell.source.experiment.privacy for cell in each.cells}
        assert len(promises) == 1
        (promise,) = promises
        assert (promise is None) == (each.key == ("claim",))
        assert promise is None or (promise.epsilon, promise.unit) == (1.0, "example")


def test_every_method_of_fedsam_has_the_same_clips_and_the_same_promise():
    for each in fedsam.families():
        data, _, steps = each.key
        clips = {float(cell.swept["clip"]) for cell in each.cells}
        assert clips == {0.2, 0.4} | ({0.8} if data == "cifar" else {0.1}) | (
            {0.1, 0.8} if int(steps) == fedsam.STEPS[data] else set()
        )
        assert all(cell.source.experiment.privacy.epsilon == 8.0 for cell in each.cells)


def test_every_point_of_fu_has_a_rate_of_its_own():
    found = list(fu.families())
    assert len({each.key for each in found}) == len(found) == 54
    assert all([float(cell.swept["rate"]) for cell in each.cells] == list(fu.RATES) for each in found)


def test_the_page_is_what_the_results_say(tmp_path: Path):
    page.write(tmp_path)
    assert (tmp_path / "tuned.md").read_bytes() == (page.DOCS / "tuned.md").read_bytes()


def test_the_half_of_the_grid_of_shards_that_was_cut_was_the_better_one_as_the_page_says():
    tried = [run for run in families.results("heikkila", "validation") if run["name"] == "shards" and run["seed"] == 0]
    best = max(tried, key=lambda run: run["metrics"]["accuracy"])
    assert best["swept"]["shards"] == "300"
    assert heikkila.GRIDS["shards"]["shards"] == (100,)


def test_the_best_step_of_the_claim_is_the_largest_that_was_tried_as_the_page_says():
    claim = page.Study.read("heikkila", list(heikkila.families())).choice_text("claim")
    assert claim == f"step {max(heikkila.STEPS)}, momentum 0"


def test_the_errata_say_what_was_measured():
    errata = (page.DOCS.parent / "errata.md").read_text()
    study = page.Study.read("fu", list(fu.families()))
    for epsilon in ("10", "30"):
        gap = study.gap((epsilon, "240", "24"), (epsilon, "240", "1"))
        assert gap is not None
        assert f"{gap.value:.1f} ± {gap.error:.1f}" in errata
    study = page.Study.read("fedsam", list(fedsam.families()))
    gap = study.gap(("femnist", "dp_fedavg", "10"), ("femnist", "fed_smp_top", "10"))
    assert gap is not None
    assert f"wins by {gap.value:.1f} points" in errata


def test_at_ten_accuracy_falls_from_each_number_of_local_iterations_to_the_next_as_the_page_says():
    study = page.Study.read("fu", list(fu.families()))
    means = [sum(study.accuracy("10", "240", str(local)).values()) for local in fu.LOCALS]
    assert means == sorted(means, reverse=True)
    assert len(study.reported_results("10", "240", "12")) == 3


def test_no_method_chooses_the_clip_that_was_tried_last_on_cifar():
    study = page.Study.read("fedsam", list(fedsam.families()))
    for method in fedsam.ON_CIFAR:
        assert "clip 0.4" in study.choice_text("cifar", method, "4")
