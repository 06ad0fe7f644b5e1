"""Write the stored digests of every run again, and print what changed: `python -m tests.digests.keep`.

CONTRIBUTING.md says when that is allowed.
"""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.digests.cases import CASES
from tests.digests.comparison import differences
from tests.digests.digest import digest_run
from tests.digests.machine import describe_machine
from tests.digests.run import run_case

KEPT = Path(__file__).parent / "kept"
MACHINE = "machine"


def read_kept(name: str) -> Any:
    """Return the digest that is stored under this name, or nothing."""
    path = KEPT / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write_kept(name: str, digest: Any) -> None:
    text = json.dumps(digest, indent=1, sort_keys=True, ensure_ascii=False)
    (KEPT / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")


def main() -> None:
    """Run everything before anything is written, so that all digests come from one state of the code."""
    found: dict[str, Any] = {MACHINE: describe_machine()}
    for case in CASES:
        with TemporaryDirectory(prefix="discreet-digest-") as folder:
            found[case.name] = digest_run(run_case(case, Path(folder)))
    KEPT.mkdir(exist_ok=True)
    for path in KEPT.glob("*.json"):
        if path.stem not in found:
            path.unlink()
            sys.stdout.write(f"{path.stem}: removed\n")
    for name, digest in found.items():
        changed = differences(read_kept(name), digest, exact=True)
        write_kept(name, digest)
        sys.stdout.write("".join(f"{line}\n" for line in [f"{name}: {len(changed)} changes", *changed]))


if __name__ == "__main__":
    main()
