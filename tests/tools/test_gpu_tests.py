"""The script that runs the tests on a GPU and writes their counts into the documentation."""

from pathlib import Path
from types import ModuleType

import pytest

from tests.tools.tool_loader import load_tool

TESTS = Path(__file__).parent.parent
REPORT = """<testsuites><testsuite>
<testcase classname="tests.engines.test_cuda" name="test_a" />
<testcase classname="tests.engines.test_cuda" name="test_b"><failure message="no">why</failure></testcase>
<testcase classname="tests.engines.test_cuda" name="test_c"><error message="no">why</error></testcase>
<testcase classname="tests.data.test_d" name="test_d"><skipped message="needs a CUDA device" /></testcase>
</testsuite></testsuites>"""


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    return load_tool("gpu_tests")


def test_these_files_hold_all_tests_that_need_a_gpu(tool: ModuleType) -> None:
    files = [str(path.relative_to(TESTS)) for path in tool.marked_files(TESTS)]
    assert files == [
        "audit/round_tester/test_engine_player.py",
        "client_layers/test_triton_kernels.py",
        "data/features/test_scatternet.py",
        "deploy/test_gpu_processes.py",
        "deploy/test_node_device.py",
        "engines/test_cuda.py",
        "test_double_kernels.py",
        "test_round_clock.py",
        "tools/test_gpu_tests.py",
    ]


@pytest.mark.cuda
def test_a_marked_test_runs_on_a_gpu_alone(tool: ModuleType) -> None:
    assert "PyTorch" in tool.describe_machine()


def test_a_test_that_failed_or_broke_is_named_on_the_page(tool: ModuleType, tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    page = tool.write_page(list(tool.read_outcomes(report)), 12.3, "one GPU", "abc1234")
    assert "**1 passed, 2 failed, 1 skipped**, in 12 s" in page
    assert "- failed: `tests/engines/test_cuda.py`, test_b" in page
    assert "| `tests/engines/test_cuda.py` | 1 | 2 | 0 |" in page
    assert "commit abc1234" in page
    assert "\n\nOne was left out.\n\n| file |" in tool.write_page([], 0.0, "one GPU", "abc1234", "One was left out.")
