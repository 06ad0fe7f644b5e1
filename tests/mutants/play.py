"""Test one mutant: put the fault into a copy of the package, and run its test against the copy."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from tests.mutants.failure import FAILURE
from tests.mutants.mutant import PACKAGE, ROOT, DoesNotApply, Mutant

Outcome: TypeAlias = Literal["caught", "not caught", "does not apply", "broken"]

TIMEOUT = 180.0  # seconds for one test; all named tests take only a few
OPTIONS = ("-q", "-p", "no:cacheprovider", "-p", "tests.mutants.failure")
# A fault is detected by an assertion, by an expected exception that was not raised, or by an error of the package.
SEEN_BY = {"AssertionError", "Failed", "DiscreetError"}


@dataclass(frozen=True)
class MutantResult:
    """The result of a mutant. `broken`: its test failed for another reason than the fault, or could not be run."""

    mutant: Mutant
    outcome: Outcome
    seconds: float
    why: str = ""


def play(mutant: Mutant) -> MutantResult:
    """Run the mutant's test on a copy of the package with the fault; the repository's own files are not changed."""
    began = time.perf_counter()
    try:
        text = mutant.patch()
    except DoesNotApply as error:
        return MutantResult(mutant, "does not apply", time.perf_counter() - began, str(error))
    with tempfile.TemporaryDirectory(prefix="discreet-mutant-") as folder:
        copy = Path(shutil.copytree(PACKAGE, Path(folder) / "src" / "discreet"))  # with its __pycache__: faster
        faulty = copy / mutant.file
        faulty.write_text(text, encoding="utf-8")
        for compiled in faulty.parent.glob(f"__pycache__/{faulty.stem}.*"):  # from the file as it was
            compiled.unlink()
        failure = Path(folder) / "failure.json"
        code, output = run_tests([mutant.test], copy.parent, "-n", "0", "-x", failure=failure)
        outcome, why = verdict(code, output, failure)
    return MutantResult(mutant, outcome, time.perf_counter() - began, why)


def run_tests(
    tests: Sequence[str], source: Path, *options: str, failure: Path | None = None, timeout: float = TIMEOUT
) -> tuple[int | None, str]:
    """Return pytest's exit code on these tests with the package from `source`, and its output; None: timed out."""
    environment = os.environ | {"PYTHONPATH": f"{source}{os.pathsep}{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
    environment |= {"OMP_NUM_THREADS": "1"} | ({} if failure is None else {FAILURE: str(failure)})
    command = [sys.executable, "-m", "pytest", *OPTIONS, *options, *tests]
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return None, f"The tests took more than {timeout:g} s."
    return done.returncode, done.stdout + done.stderr


def verdict(code: int | None, output: str, failure: Path) -> tuple[Outcome, str]:
    """Judge a mutant by pytest's exit code and the kind of failure."""
    if code == 0:
        return "not caught", "The test passes with the fault."
    if code != 1 or not failure.exists():  # timed out, no test of that name, or a module that can't be imported
        return "broken", output[-2000:]
    found = json.loads(failure.read_text())
    if found["phase"] != "call" or not SEEN_BY & set(found["kinds"]):
        return "broken", f"The test fails by {found['kinds'][0]} in its {found['phase']}, which is not about the fault."
    return "caught", ""
