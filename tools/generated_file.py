"""Write a generated file, or say that it is out of date and what writes it anew."""

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def replace_block(page: str, start: str, end: str, block: str) -> str:
    """Return the page with the text between the lines `start` and `end` replaced."""
    before, rest = page.split(start)
    return f"{before}{start}\n{block}\n{end}{rest.split(end)[1]}"


def write_or_check(texts: dict[Path, str], tool: str) -> int:
    """Write each text to its file. With `--check` on the command line, only compare them.

    Returns:
        The exit code: 1 if `--check` found a file that differs.
    """
    outdated = [path for path, text in texts.items() if not path.is_file() or path.read_text("utf-8") != text]
    if "--check" in sys.argv:
        for path in outdated:
            print(f"{path.relative_to(ROOT)} is out of date. Run `make pages`, or: python tools/{tool}")
        return 1 if outdated else 0
    for path in outdated:
        path.write_text(texts[path], encoding="utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
    return 0
