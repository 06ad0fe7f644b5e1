"""Merged data: clients also share the official test set, and each holds out a part of its data."""

from pathlib import Path

import pytest
import torch

from discreet.data.features.feature_task import Features
from discreet.data.partition import StratifiedSplit
from discreet.data.tasks.any_task import AnyTask
from discreet.data.tasks.fashion_mnist import FashionMnist
from discreet.data.tasks.merged_splits import MergedSplits
from discreet.data.tasks.mnist import Mnist
from discreet.data.tasks.task_loading import find_source, load_task
from discreet.part import from_plain, to_plain
from discreet.paths import Paths


def test_clients_share_all_70000_clothes_evenly_and_each_holds_out_a_fifth(data_dir: Path):
    if not (data_dir / "fashion-mnist").is_dir():
        pytest.skip(f"fashion-mnist is not in {data_dir}")
    source = MergedSplits(of=FashionMnist(partition=StratifiedSplit()))
    task = load_task(source, torch.Generator().manual_seed(0), Paths.default(data=data_dir))
    assert task.train.sizes == (5600,) * 10
    held, own = task.test_targets.split(1400), task.train.examples_at(torch.arange(56_000))[1].split(5600)
    for client in range(10):
        both = torch.bincount(held[client], minlength=10) + torch.bincount(own[client], minlength=10)
        assert both.tolist() == [700] * 10


def test_a_file_names_it_around_any_data_set_or_its_features():
    given = {"kind": "merged", "of": {"kind": "features", "of": {"kind": "mnist", "clients": 4}}}
    made = from_plain(AnyTask, given)
    assert made == MergedSplits(of=Features(of=Mnist(clients=4)), test_fraction=0.2)
    assert from_plain(AnyTask, to_plain(made)) == made
    assert find_source(made) == Mnist(clients=4)
