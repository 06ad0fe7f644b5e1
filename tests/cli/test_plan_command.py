"""The command that `discreet plan` prints for copying trains exactly what was planned."""

import shlex
from pathlib import Path

from discreet.experiment.configuration.starter_files import BUILT_IN
from tests.cli.conftest import Discreet


def test_the_command_that_trains_repeats_what_was_set(discreet: Discreet, tmp_path: Path):
    file = tmp_path / "my experiment.toml"
    file.write_text(BUILT_IN)
    out = discreet("plan", file, "--set", "privacy.epsilon=3.0", "--set", "rounds=2").out
    said = " ".join(out.split()).partition("To train: ")[2]
    assert shlex.split(said) == [
        *("discreet", "run", str(file)),
        *("--set", "privacy.epsilon=3.0", "--set", "rounds=2"),
    ]


def test_a_claim_is_planned_beside_what_is_certified(discreet: Discreet, tmp_path: Path):
    file = tmp_path / "published.toml"
    published = 'recipe = "ddp_fedavg"\ngradients = "local"\nas_published = true\nnoise_multiplier = 1.0'
    what, _, how = BUILT_IN.replace('recipe = "pfl"', published).partition("[privacy]")
    file.write_text(f"{what}[algorithm]{how.partition('[algorithm]')[2]}")
    out = " ".join(discreet(f"plan {file}").out.split())
    assert "Claimed by Theorem 4.6 of Heikkilä 2025, but not certified: ε = " in out
