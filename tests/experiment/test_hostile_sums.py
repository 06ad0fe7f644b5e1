"""A run whose secure sum is spoilt in one round loses that round, pays for it, and goes on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.uploads import Uploads
from discreet.engines.embedded import EmbeddedEngine
from discreet.privacy.ledger import Ledger
from tests.experiment.test_run import SECURE, start
from tests.small_experiment import PrepareJob


def test_the_round_is_lost_and_counted_and_the_run_goes_on(
    prepare: PrepareJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the second of three rounds every client adds a quarter of the ring to each coordinate."""
    honest = EmbeddedEngine.client_steps

    def client_steps(
        self: EmbeddedEngine, broadcast: Broadcast, cohort: list[int]
    ) -> Iterator[tuple[list[int], Uploads]]:
        for block, sent in honest(self, broadcast, cohort):
            assert broadcast.encoding is not None
            more = 2 ** (broadcast.encoding.bits - 2) // len(cohort) * (broadcast.round == 1)
            yield block, sent._replace(rows={name: value + more for name, value in sent.rows.items()})

    monkeypatch.setattr(EmbeddedEngine, "client_steps", client_steps)
    ended = start(prepare(*SECURE, "rounds=3", "seed=3"), tmp_path / "run")
    lines = ended.record.read_rounds()
    assert [line["clients"] > 0 for line in lines] == [True, False, True]
    assert "Nobody can be named" in lines[1]["lost"]
    assert lines[1]["revealed"] is True
    found = Ledger.open(tmp_path / "run" / "ledger.jsonl").summary()["releases"]
    assert found == {"committed": 3, "reserved": 0, "voided": 0}
