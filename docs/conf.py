"""Sphinx: the documentation site, from the Markdown pages of this repository and the docstrings of the package.

`make docs` builds it into site/. The source folder is the repository's root, so that links between README.md and docs/
are the same on the site and in a file browser.
"""

import ast
import inspect
import textwrap
from typing import Any

from discreet import __version__

project = "Discreet"
author = "The Discreet authors"
release = version = __version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
root_doc = "docs/index"
include_patterns = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "docs/**.md"]
include_patterns += ["docs/notebooks/*.ipynb"]
exclude_patterns = [".*", "build", "site", "runs", "src", "tests", "experiments", "benchmarks", "examples", "shared"]

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

# Notebooks are stored without outputs and run by the build, in an empty folder; an error in a cell fails it.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_execution_timeout = 300  # seconds of one cell, on a busy machine

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_google_docstring = True
napoleon_use_rtype = False

html_theme = "furo"
html_title = "Discreet"
html_additional_pages = {"index": "redirect.html"}
templates_path = ["_templates"]
html_show_sourcelink = False


def show_written_types(app: Any, what: str, name: str, documented: object, *_: object) -> None:
    """Show types as the source writes them: `AnyModel` instead of the union of all models behind that name."""
    recorded = app.env.current_document.autodoc_annotations.get(name)
    if not recorded or what not in ("function", "method", "class"):
        return
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(documented))).body  # type: ignore[arg-type]
    for node in ast.walk(definition):
        if isinstance(node, ast.arg) and node.annotation is not None and node.arg in recorded:
            recorded[node.arg] = ast.unparse(node.annotation)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id in recorded:
            recorded[node.target.id] = ast.unparse(node.annotation)


def setup(app: Any) -> None:
    app.connect("autodoc-process-signature", show_written_types)
