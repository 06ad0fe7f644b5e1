"""Write where public names are listed: the stub for type checkers, and the recipes on the page of the Python API.

`--check` only says whether both are up to date.
"""

import sys

from generated_file import ROOT, replace_block, write_or_check

import discreet
from discreet.algorithms.recipes.registry import RECIPES

STUB = ROOT / "src" / "discreet" / "__init__.pyi"
PAGE = ROOT / "docs" / "reference" / "api.md"
START, END = "<!-- recipes: written by tools/public_names.py -->\n", "<!-- end of the recipes -->\n"


def stub() -> str:
    """Return a line for each public name, with the module that defines it."""
    names = [name for name in discreet.__all__ if name != "__version__"]
    modules = {name: getattr(discreet, name).__module__ for name in names}
    lines = sorted(f"from {module} import {name} as {name}" for name, module in modules.items())
    return "\n".join([*lines, "", "__all__: list[str]", "__version__: str", ""])


def recipes() -> str:
    """Return the list of recipes as directives of Sphinx."""
    return "\n".join(["```{eval-rst}", *(f".. autofunction:: discreet.{name}" for name in RECIPES), "```", ""])


def main() -> int:
    page = replace_block(PAGE.read_text(encoding="utf-8"), START, END, recipes())
    return write_or_check({STUB: stub(), PAGE: page}, "public_names.py")


if __name__ == "__main__":
    sys.exit(main())
