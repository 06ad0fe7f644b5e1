"""Attacks on a run directory and on a file: where results are kept, and who sees them."""

import json
from pathlib import Path

import pytest
import torch

import discreet as d
from discreet.cli.main import run as run_command
from discreet.errors import InvalidInput
from discreet.experiment.run_directory.run_record import RunRecord
from discreet.report import run_page


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A private run on digits, without a seed."""
    path = tmp_path_factory.mktemp("digits") / "run"
    small = ("rounds=2", "task.clients=3", "task.test_fraction=0.9")
    settings = [word for setting in small for word in ("--set", setting)]
    assert run_command(["run", *settings, "--out", str(path), "--json"]) == 0
    return path


@pytest.mark.parametrize("kind", ["inversion", "labels", "membership"])
def test_an_attack_is_kept_beside_the_run_for_its_owner(first: Path, kind):
    found = d.attack(first, kind, seed=1, shadows=8)
    kept = json.loads((first / f"attack_{kind}.json").read_text())
    assert kept == json.loads(json.dumps(found.to_plain()))
    page = (first / "report.html").read_text().replace("&#x27;", "'").replace("\u202f%", " %")
    assert found.sentences()[0].split(".")[0] in page
    public = run_page.write(first, public=True).read_text()
    assert "inference" not in public
    assert "data:image/png" not in public


def test_a_seeded_attack_repeats(first: Path):
    once, again = (d.attack(first, "membership", seed=3, shadows=8).to_plain() for _ in range(2))
    assert once == again
    assert once["certified_epsilon"] == d.load(first).guarantee.epsilon


def test_the_attacks_of_a_run_that_goes_on_are_removed_with_its_card(first: Path, tmp_path: Path):
    d.attack(first, "labels", seed=1)
    assert (first / "attack_labels.json").exists()
    RunRecord.open(first).remove_card()
    assert not list(first.glob("attack_*.json"))


def test_a_run_from_python_is_refused(tmp_path: Path):
    clients = d.clients_from_arrays(torch.rand(30, 4), torch.arange(30) % 2, clients=[i % 3 for i in range(30)])
    algorithm = d.fedavg(learning_rate=0.1, batch_size=5)
    run = d.train(torch.nn.Linear(4, 2), clients, rounds=1, algorithm=algorithm, out=tmp_path / "run")
    with pytest.raises(InvalidInput, match="made from Python"):
        d.attack(run, "labels")


def test_an_unknown_attack_is_refused(tmp_path: Path):
    file = tmp_path / "e.toml"
    file.write_text(
        'rounds = 1\ntask = { kind = "digits", clients = 3 }\nmodel = { kind = "linear" }\n'
        'algorithm = { recipe = "fedavg", learning_rate = 0.1, batch_size = 8 }\n'
    )
    with pytest.raises(InvalidInput, match="'membership', 'inversion' or 'labels', and got 'magic'"):
        d.attack(file, "magic")  # type: ignore[arg-type]
    assert d.attack(file, "labels").guesses[-1].view == "this experiment"
