"""Say at the end of a test run which tests were not run and why, in groups; a pytest plugin, also for xdist.

With the environment variable TEST_RECORD, each run appends its outcome to that file. `python -m tests.skip_report FILE`
prints one line over all these runs: a test that any of them carried out is not listed.
"""

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from pathlib import Path

import pytest

MARKERS = {
    "cuda": "needing a CUDA device (make test-gpu)",
    "slow": "slow (make test-slow)",
    "deploy": "starting real processes (make test-deploy)",
    "browser": "needing Chromium (make test-browser)",
}
REASONS = (  # what a skip says, and the group that it belongs to
    (r".*CUDA.*", MARKERS["cuda"]),
    (r"real data sets are not here.*|\S+ is not in /.*", "needing real data that is not here (DISCREET_DATA)"),
    (r"could not import '(\w+).*", r"needing \1, which is not installed"),
    (r"no container runtime is running here", "needing a container runtime"),
    (r"no wheelhouse for container images .*", "needing a wheelhouse for container images (DISCREET_WHEELS)"),
    (r"systemd-analyze is not here", "needing systemd-analyze"),
    (r"kept on another kind of machine.*", "comparing bits that were kept on another kind of machine"),
)


class SkipReport:
    """Collects over a run what was carried out and what was not, and prints the last line."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.ran: set[str] = set()
        self.not_run: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self.not_run[report.nodeid] = group_of(skip_reason(report))
        elif report.when == "call":
            self.ran.add(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self.not_run[report.nodeid] = group_of(skip_reason(report))

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        for item in items:
            marker = next((marker for marker in MARKERS if item.get_closest_marker(marker)), None)
            if marker is not None:
                self.not_run[item.nodeid] = MARKERS[marker]
        if is_worker(self.config):  # the process that prints learns of it when the worker ends
            self.config.workeroutput["not_run"] = self.not_run  # type: ignore[attr-defined]  # xdist's

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        self.not_run |= getattr(node, "workeroutput", {}).get("not_run", {})

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Generator[None, object, object]:
        result = yield
        terminal = self.config.pluginmanager.get_plugin("terminalreporter")
        if terminal is not None and not is_worker(self.config):
            terminal.write_line(summary_line(self.ran, self.not_run))
            if "TEST_RECORD" in os.environ:
                line = json.dumps({"ran": sorted(self.ran), "not_run": self.not_run})
                with Path(os.environ["TEST_RECORD"]).open("a", encoding="utf-8") as record:
                    record.write(line + "\n")
        return result


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(SkipReport(config), "skip_report")


def is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workeroutput")


def skip_reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return what the skip says, without pytest's prefix."""
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")


def group_of(reason: str) -> str:
    """Return the group of a reason in plain words; a reason without a group stands for itself."""
    for pattern, words in REASONS:
        match = re.fullmatch(pattern, reason, re.DOTALL)
        if match:
            return match.expand(words)
    return f"skipped: {reason.splitlines()[0] if reason else 'no reason is stated'}"


def summary_line(ran: Iterable[str], not_run: Mapping[str, str]) -> str:
    """Return one line: how many tests were not run, by group. A file that was skipped as a whole counts as one."""
    ran = set(ran)
    files = {test.partition("::")[0] for test in ran}
    missing = {test: why for test, why in not_run.items() if test not in ran and test not in files}
    if not missing:
        return f"Not run: none. All {len(ran)} tests were run."
    tests = Counter(why for test, why in missing.items() if "::" in test)
    whole = Counter(why for test, why in missing.items() if "::" not in test)
    groups = [f"{count} {why}" for why, count in tests.most_common()]
    groups += [f"{count} whole {'file' if count == 1 else 'files'} {why}" for why, count in whole.most_common()]
    return f"Not run: {len(missing)} of {len(ran) + len(missing)}: {'; '.join(groups)}."


def main(record: Path) -> None:
    ran: set[str] = set()
    not_run: dict[str, str] = {}
    for line in record.read_text(encoding="utf-8").splitlines():
        run = json.loads(line)
        ran.update(run["ran"])
        not_run |= run["not_run"]
    sys.stdout.write(summary_line(ran, not_run) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
