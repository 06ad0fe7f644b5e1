"""Write the file map in ARCHITECTURE.md: a line for each folder, and for each file of `algorithms`.

The texts are the first sentences of the docstrings. `--check` only says whether the page is up to date.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from generated_file import ROOT, replace_block, write_or_check

PACKAGE = ROOT / "src" / "discreet"
PAGE = ROOT / "ARCHITECTURE.md"
START, END = "<!-- file map: written by tools/file_map.py -->\n", "<!-- end of the file map -->\n"
IN_FULL = "algorithms"  # whose files are all listed
WIDTH = 42


def summary(path: Path) -> str:
    """Return the first sentence of a file's docstring."""
    text = " ".join((ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split())
    return re.split(r"(?<=\.)(?<!et al\.)\s", text, maxsplit=1)[0].rstrip(".")


def lines(folder: Path, depth: int = 0) -> Iterator[str]:
    """Yield a line for the folder, for its files if they are listed, and for the folders in it."""
    indent = "  " * depth
    yield f"{indent + folder.name + '/':{WIDTH}}{summary(folder / '__init__.py')}"
    if IN_FULL in folder.relative_to(PACKAGE).parts:
        for path in sorted(folder.glob("[!_]*.py")):
            yield f"{indent + '  ' + path.name:{WIDTH}}{summary(path)}"
    for inner in sorted(path.parent for path in folder.glob("*/__init__.py")):
        yield from lines(inner, depth + 1)


def file_map() -> str:
    """Return the map as a block of text."""
    top = [f"{path.name:{WIDTH}}{summary(path)}" for path in sorted(PACKAGE.glob("[!_]*.py"))]
    rooms = [line for path in sorted(PACKAGE.glob("*/__init__.py")) for line in lines(path.parent)]
    return "\n".join(["```text", *top, *rooms, "```", ""])


def main() -> int:
    page = replace_block(PAGE.read_text(encoding="utf-8"), START, END, file_map())
    return write_or_check({PAGE: page}, "file_map.py")


if __name__ == "__main__":
    sys.exit(main())
