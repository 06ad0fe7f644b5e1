"""Shared by all tests: the examples that Hypothesis draws, the place of real data sets, and no contact with the user's
state folder. Hypothesis draws the same examples each time, except in `make test-random`."""

import os
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ("tests.skip_report",)

settings.register_profile("fixed", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("random", settings.get_profile("fixed"), derandomize=False, print_blob=True)
settings.load_profile("fixed")


def pytest_configure() -> None:
    """Keep the folders of tests in memory where there is room: many tests write files durably, line by line."""
    memory = Path("/dev/shm")
    if os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 4 * 2**30:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", metavar="K/N", help="run only part K of N of the chosen tests, K from 0 to N − 1")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the part of the tests that --part names, and skip tests for CUDA where there is no such device."""
    if part := config.getoption("--part"):
        _keep_part(config, items, part)
    on_gpu = [item for item in items if item.get_closest_marker("cuda")]
    if not on_gpu:
        return
    import torch

    if not torch.cuda.is_available():
        for item in on_gpu:
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


def _keep_part(config: pytest.Config, items: list[pytest.Item], asked: str) -> None:
    """Deselect the tests of other parts. The part of a test depends on its name alone."""
    part, _, parts = (int(number) if number.isdecimal() else 0 for number in asked.partition("/"))
    if not part < parts:
        raise pytest.UsageError(f"--part must be K/N with K from 0 to N − 1, got {asked!r}")
    kept = [item for item in items if zlib.crc32(item.nodeid.encode()) % parts == part]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept


@pytest.fixture(scope="session", autouse=True)
def state_of_all_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep run keys and trusted code out of the user's own state folder. A test may set another folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real data sets: DISCREET_DATA, else `shared/data` next to the repository. Skip if there is none."""
    named = os.environ.get("DISCREET_DATA")
    found = Path(named) if named else Path(__file__).resolve().parents[1].parent / "shared" / "data"
    if not found.is_dir():
        pytest.skip(f"real data sets are not here: {found} (DISCREET_DATA names another folder)")
    return found
