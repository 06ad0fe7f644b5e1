"""A pytest plugin that notes how a test failed: in which phase, and by which exception."""

import json
import os
from pathlib import Path

import pytest

FAILURE = "DISCREET_MUTANT_FAILURE"  # names the file to write


@pytest.hookimpl
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    if call.excinfo is not None and FAILURE in os.environ:
        kinds = [each.__name__ for each in call.excinfo.type.__mro__]
        Path(os.environ[FAILURE]).write_text(json.dumps({"phase": call.when, "kinds": kinds}))
