"""Small run directories as `discreet run` writes them."""

import json
from pathlib import Path
from typing import Any

import pytest

from discreet.part import to_plain
from discreet.privacy.events import GaussianNoise, PoissonSampled, Repeated
from discreet.privacy.guarantee import Claim, Guarantee, LedgerMark
from discreet.privacy.ledger import Budget, Ledger
from discreet.privacy.release import Release

STEP = PoissonSampled(sampling_rate=0.25, event=GaussianNoise(noise_multiplier=4.0))
TESTED = "Accuracy and loss, computed without noise on 9,359 test examples."
CLAIM = Claim(epsilon=0.62, delta=1e-5, source="Theorem 4.6", reason="it counts a local state as aggregated")

PRIVACY = """
[privacy]
unit = "example"
against = "server"
epsilon = 2.0
delta = 1e-4
"""
RESOLVED = """rounds = 4
task = {{ kind = "digits", clients = 10 }}
{privacy}
[algorithm.mechanism]
kind = "gaussian"
clip_norm = 0.5
"""


def release(rounds: int) -> Release:
    return Release(unit="example", relation="zero_out", view="server", event=Repeated(count=rounds, event=STEP))


@pytest.fixture(scope="session")
def certified_guarantee() -> Guarantee:
    return Guarantee.certify(
        release(4), 1e-4, claims=[CLAIM], assumptions=["Clients are disjoint."], not_covered=[TESTED]
    )


def lines(count: int) -> list[dict[str, Any]]:
    """Return rounds in which every number about the data is unique on the page."""
    return [
        {
            "round": at,
            "clients": 7001 + at,
            "epsilon": 0.25 * at,
            "evaluation": {"accuracy": 0.71234, "loss": 3.1416},
            "training": {"accuracy": 0.77889, "loss": 2.7182},
            "bits": {"up": 83_456, "down": 91_234},
            "norms": {"mean": 5.4321, "median": 5.1234, "p5": 4.9871, "p25": 4.5432, "p75": 6.2345, "p95": 6.7891},
            "kept": {"mean": 0.61718, "deviation": 0.19191},
            "signal_to_noise": 0.34567,
            "clipped": 0.38383,
            "seconds": 2.6262,
        }
        for at in range(1, count + 1)
    ]


@pytest.fixture
def run(tmp_path: Path, certified_guarantee: Guarantee) -> Path:
    """A finished private run, with its own ledger."""
    folder = tmp_path / "digits-1"
    folder.mkdir()
    budget = Budget(unit="example", relation="zero_out", view="server", epsilon=2, delta=1e-4)
    ledger = Ledger.create(folder / "ledger.jsonl", [budget])
    for at in range(4):
        ledger.commit(ledger.reserve(f"run/{at}", [release(1)]), [release(1)])
    state = ledger.verify()
    mark = LedgerMark(head=state["head"], length=state["records"])
    guarantee = {**to_plain(certified_guarantee), "ledger": to_plain(mark)}
    (folder / "resolved.toml").write_text(RESOLVED.format(privacy=PRIVACY))
    (folder / "experiment.toml").write_text('# ask Ann first\n[algorithm]\nrecipe = "pfl"\n')
    (folder / "environment.json").write_text(
        json.dumps({"python": "3.11.9", "host": "ward-7", "packages": {"torch": "2"}})
    )
    (folder / "guarantee.json").write_text(json.dumps({"guarantees": [guarantee]}))
    write_rounds(folder, lines(4))
    return folder


@pytest.fixture
def open_run(run: Path) -> Path:
    """A run of the experiment without promise, guarantee and ledger."""
    (run / "resolved.toml").write_text(RESOLVED.format(privacy=""))
    (run / "guarantee.json").write_text('{"guarantees": []}')
    (run / "ledger.jsonl").unlink()
    write_rounds(run, [{key: value for key, value in line.items() if key != "epsilon"} for line in lines(4)])
    return run


def write_rounds(folder: Path, rows: list[dict[str, Any]]) -> None:
    (folder / "rounds.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
