"""Write into CONTRIBUTING.md how many bad inputs the tests try: `python -m tests.bad_inputs.count_cases`.

`--check` only says whether the table is up to date.
"""

import inspect
import sys
from pathlib import Path

import discreet
from discreet.algorithms.recipes.registry import RECIPES
from tests.bad_inputs.command_lines import VALID as COMMANDS
from tests.bad_inputs.command_lines import lines
from tests.bad_inputs.damaged_files import ROWS, cases
from tests.bad_inputs.test_python_arguments import FLAGS, LOOP, VALID, WRONG
from tests.fuzz.parsers import PARSERS

PAGE = Path(__file__).parents[2] / "CONTRIBUTING.md"
START = "<!-- bad inputs: written by tests/bad_inputs/count_cases.py -->\n"
END = "<!-- end of the bad inputs -->\n"
OTHER_ARGUMENTS = ("model", "clients", "algorithm", "privacy", "progress", "callbacks")  # of `session` and `train`


def table() -> str:
    """Return the counts as a table."""
    arguments = sum(len(valid) for _, valid in VALID.values()) + len({**LOOP, **FLAGS}) + len(OTHER_ARGUMENTS)
    arguments += sum(len(inspect.signature(getattr(discreet, name)).parameters) for name in RECIPES)
    rows: list[tuple[str, str, int | str]] = [
        ("command lines", f"{len(COMMANDS)} commands", sum(1 for _ in lines())),
        ("damaged files", f"{len({row[0] for row in ROWS})} kinds of files", sum(1 for _ in cases())),
        ("arguments", f"{len(VALID) + 2 + len(RECIPES)} functions, {arguments} arguments", arguments * len(WRONG)),
        ("fuzzing", f"{len(PARSERS)} parsers", "the corpus, and 20 fresh edits for each in `make test`"),
    ]
    counted = [(what, of, f"{cases:,}" if isinstance(cases, int) else cases) for what, of, cases in rows]
    return "\n".join(
        ["| bad inputs | of | cases |", "|---|---|---|", *(f"| {' | '.join(row)} |" for row in counted), ""]
    )


def page_with_counts() -> str:
    """Return the page with the table of today."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(START)
    return before + START + table() + END + rest.split(END)[1]


def main() -> int:
    if "--check" not in sys.argv:
        PAGE.write_text(page_with_counts(), encoding="utf-8")
    is_fresh = PAGE.read_text(encoding="utf-8") == page_with_counts()
    sys.stdout.write("" if is_fresh else "CONTRIBUTING.md is out of date: run python -m tests.bad_inputs.count_cases\n")
    return 0 if is_fresh else 1


if __name__ == "__main__":
    sys.exit(main())
