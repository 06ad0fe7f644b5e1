"""Run the tests that need a CUDA device, and write docs/gpu_tests.md: their counts, the date, the commit and the GPU.

No machine of the usual checks has a GPU, so these tests are skipped there, and this page says when they last ran.

python tools/gpu_tests.py
python tools/gpu_tests.py --commit 1a2b3c4    # in a copy of the files without .git
"""

import argparse
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "gpu_tests.md"
MARK = "pytest.mark.cuda"


def marked_files(tests: Path) -> list[Path]:
    """Return the files with tests that are marked `cuda`; only these are imported."""
    return sorted(path for path in tests.rglob("test_*.py") if MARK in path.read_text(encoding="utf-8"))


def run_tests(files: list[Path], report: Path) -> None:
    """Run the marked tests of these files one after the other, and write pytest's report."""
    arguments = ["-m", "cuda", "-n", "0", "-q", "-p", "no:cacheprovider", "--override-ini", "addopts="]
    subprocess.run([sys.executable, "-m", "pytest", *arguments, f"--junitxml={report}", *files], cwd=ROOT, check=False)


def read_outcomes(report: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the file, the name and the outcome of each test: passed, failed or skipped."""
    for case in ET.parse(report).getroot().iter("testcase"):
        tags = {child.tag for child in case}
        outcome = "failed" if tags & {"failure", "error"} else "skipped" if "skipped" in tags else "passed"
        yield case.attrib["classname"].replace(".", "/") + ".py", case.attrib["name"], outcome


def write_page(
    outcomes: list[tuple[str, str, str]], seconds: float, machine: str, commit: str, note: str | None = None
) -> str:
    """Return the page of one run, with a note on it if there is one."""
    counts = Counter(outcome for _, _, outcome in outcomes)
    files = Counter((file, outcome) for file, _, outcome in outcomes)
    failed = [f"- failed: `{file}`, {name}" for file, name, outcome in outcomes if outcome == "failed"]
    rows = [
        f"| `{file}` | {files[file, 'passed']} | {files[file, 'failed']} | {files[file, 'skipped']} |"
        for file in sorted({file for file, _ in files})
    ]
    lines = [
        "# Tests on a GPU",
        "",
        "The tests that need a CUDA device are marked `cuda` and are skipped where there is none. `make test-gpu` runs",
        "them, and writes this page (`tools/gpu_tests.py`). The last run:",
        "",
        f"- {datetime.now(UTC):%Y-%m-%d}, commit {commit}",
        f"- {machine}",
        f"- **{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped**, in {seconds:.0f} s",
        *failed,
        *([] if note is None else ["", note]),
        "",
        "| file | passed | failed | skipped |",
        "|---|---:|---:|---:|",
        *rows,
    ]
    return "\n".join(lines) + "\n"


def describe_machine() -> str:
    """Name the GPU and the versions of what computed on it."""
    import torch

    if not torch.cuda.is_available():
        sys.exit("There is no CUDA device here, so nothing was run and nothing was written.")
    return (
        f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, CUDA {torch.version.cuda}, "
        f"Python {sys.version.split()[0]}"
    )


def current_commit() -> str:
    """Return the short hash of the commit, with a word if files differ from it."""

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no")
    return git("rev-parse", "--short", "HEAD") + (" with changes" if changed else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commit", help="default: what git says")
    parser.add_argument("--note", metavar="TEXT", help="what the page is to say about this run besides")
    arguments = parser.parse_args()
    machine, commit = describe_machine(), arguments.commit or current_commit()
    with tempfile.TemporaryDirectory() as folder:
        report, began = Path(folder) / "report.xml", datetime.now(UTC)
        run_tests(marked_files(ROOT / "tests"), report)
        outcomes = list(read_outcomes(report))
    seconds = (datetime.now(UTC) - began).total_seconds()
    PAGE.write_text(write_page(outcomes, seconds, machine, commit, arguments.note), encoding="utf-8")
    print(PAGE)
    sys.exit(not outcomes or any(outcome != "passed" for _, _, outcome in outcomes))


if __name__ == "__main__":
    main()
