"""On a real Ray cluster a run leaves the same bits as with its workers in one process."""

from pathlib import Path

import pytest

from tests.digests.cases import CASES
from tests.digests.digest import digest_run
from tests.digests.run import run_case

pytestmark = pytest.mark.deploy


def test_workers_in_processes_of_their_own_leave_what_workers_in_one_process_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    case = next(each for each in CASES if each.name == "ray_denoised")
    here, there = (run_case(case, tmp_path / name, real_ray=name == "there") for name in ("here", "there"))
    assert digest_run(there) == digest_run(here)
