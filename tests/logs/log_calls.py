"""Read the package's source for log calls, and find what could write a private value."""

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from discreet.logs import FIELDS

PACKAGE = Path(__file__).parents[2] / "src" / "discreet"
OUTPUT = ("logs.py", "log_output.py")  # the two files that may use the standard library's logging
OTHER_LOGGERS = {  # these speak to the loggers of other packages, and write no event of ours
    "deploy/entry_points.py": "import logging",
    "engines/flower/flower_apps.py": "from logging import INFO",
    "privacy/second_engine.py": "from absl import logging",
}
METHODS = ("debug", "info", "warning", "error")

PublicValues: TypeAlias = Mapping[str, Sequence[str]]  # by field: expressions whose values are public


def read_public_values() -> dict[str, PublicValues]:
    """Return the expressions that each file may log."""
    return tomllib.loads(Path(__file__).with_name("public_values.toml").read_text(encoding="utf-8"))


def package_files() -> dict[str, str]:
    """Return the source of every file that may log, by its path in the package: no other imports what that needs."""
    files = {path.relative_to(PACKAGE).as_posix(): path for path in sorted(PACKAGE.rglob("*.py"))}
    sources = {name: path.read_text(encoding="utf-8") for name, path in files.items() if name not in OUTPUT}
    return {name: source for name, source in sources.items() if re.search(r"\blogs\b|logging", source)}


def find_problems(source: str, public: PublicValues, file: str = "") -> list[str]:
    """Return what is wrong with the log calls of a file, one sentence for each."""
    tree = ast.parse(source)
    return [
        *_other_ways(tree, file),
        *_aliases(tree),
        *(why for call in log_calls(tree) for why in _check(call, public)),
    ]


def log_calls(tree: ast.AST) -> Iterator[ast.Call]:
    """Yield every call that writes an event, or binds fields to events."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (_is_method(node.func) or _is_name(node.func, "bind_fields")):
            yield node


def _is_method(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and _is_name(node.value, "log") and node.attr in METHODS


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _other_ways(tree: ast.AST, file: str) -> Iterator[str]:
    """Yield imports of logging itself: what is logged past `discreet.logs` would not be read here."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = {name.name.partition(".")[0] for name in node.names}
            module = (node.module or "").partition(".")[0] if isinstance(node, ast.ImportFrom) else ""
            if ("logging" in names | {module}) and OTHER_LOGGERS.get(file) != ast.unparse(node):
                yield f"{ast.unparse(node)}: log by discreet.logs, whose calls are read here"


def _aliases(tree: ast.Module) -> Iterator[str]:
    """Yield uses of a log other than `log = get_log(__name__)` in a module and calls of its methods."""
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "discreet.logs"]
    if not imports:
        return
    if any(ast.unparse(node).startswith("if __name__ == '__main__'") for node in tree.body):
        yield "a module that runs as __main__ has a logger of this name, which nobody listens to"
    for name in (name for node in imports for name in node.names):
        if name.asname is not None or name.name not in ("get_log", "bind_fields", "silence_events"):
            yield f"import of {name.name} under another name, or past get_log and bind_fields"
    usual = {id(call.func) for call in log_calls(tree)}
    usual |= {id(call.func.value) for call in log_calls(tree) if isinstance(call.func, ast.Attribute)}
    usual |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "is_silent"}
    for statement in tree.body:
        if ast.unparse(statement) == "log = get_log(__name__)":
            usual |= {id(part) for part in ast.walk(statement)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in ("log", "get_log", "bind_fields") and id(node) not in usual:
            yield f"line {node.lineno}: {node.id} is used in a way that is not read here"


def _check(call: ast.Call, public: PublicValues) -> Iterator[str]:
    text = ast.unparse(call)
    events = call.args if _is_method(call.func) else ["none"]
    if len(events) != 1 or not (events == ["none"] or _is_text(events[0])):
        yield f"{text}: an event is one constant sentence"
    for keyword in call.keywords:
        if keyword.arg is None:
            yield f"{text}: fields are named one by one"
        elif keyword.arg not in FIELDS:
            yield f"{text}: {keyword.arg} is not a field"
        elif not isinstance(keyword.value, ast.Constant) and ast.unparse(keyword.value) not in public.get(
            keyword.arg, ()
        ):
            yield f"{text}: {keyword.arg} is not listed as public in public_values.toml"


def _is_text(node: object) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
