"""Check names: no participle or particle as a whole name, no file name twice in the package, papers by their names.

A function is a verb phrase or a noun of the field, a file is a noun, a boolean is a question. This check refuses what
broke that rule most often, in the package, in the helpers of tests, in tools, experiments and benchmarks; `make lint`
runs it.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "discreet"
FOLDERS = (PACKAGE, *(ROOT / name for name in ("tests", "tools", "experiments", "benchmarks")))
WORDS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
PARTICLES, PARTICIPLES, USUAL, EXCEPTIONS = (
    frozenset(WORDS[name].split()) for name in ("particles", "participles", "usual", "exceptions")
)


def is_participle(word: str) -> bool:
    """Whether a single lower-case word is a participle, by the word lists and its ending."""
    return word in PARTICIPLES or (len(word) > 3 and word.endswith(("ed", "ing")) and word not in USUAL)


def is_refused(name: str) -> bool:
    """Whether every word of the name is a participle or a particle."""
    if name.startswith("__"):
        return False
    words = [word for word in name.lower().strip("_").split("_") if word]
    return bool(words) and all(word in PARTICLES or is_participle(word) for word in words)


def defined_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and name of every function, method and class."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name not in EXCEPTIONS:
            yield node.lineno, re.sub(r"(?<=[a-z])(?=[A-Z])", "_", node.name)


def python_files(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield the path within the folder and the source of every Python file."""
    for path in sorted(folder.rglob("*.py")):
        yield path.relative_to(folder), path.read_text(encoding="utf-8")


def check_words(folder: Path) -> Iterator[str]:
    """Yield one line for each file, function or class that is named by participles or particles alone.

    A test function is a sentence that starts with `test_`, so none is refused.
    """
    for path, source in python_files(folder):
        if path.stem != "__init__" and is_refused(path.stem):
            yield f"{path}: a file is named by a noun, and this one by a participle or a particle."
        for line, name in defined_names(ast.parse(source)):
            if is_refused(name):
                yield f"{path}:{line}: {name} is a participle or a particle: use a verb or a noun."


def check_repeats(folder: Path) -> Iterator[str]:
    """Yield one line for each file with the name of an earlier one. A command's file has the name of its command."""
    seen: dict[str, Path] = {}
    for path, _ in python_files(folder):
        if path.stem not in ("__init__", "__main__") and "cli" not in path.parts:
            if path.stem in seen:
                yield f"{path}: has the same name as {seen[path.stem]}."
            seen[path.stem] = path


def check_citations(folder: Path) -> Iterator[str]:
    """Yield one line for each place that cites a paper by a number."""
    for path, source in python_files(folder):
        for number, text in enumerate(source.splitlines(), 1):
            if re.search(r"\b[Pp]aper[s_ ]*00\d|\b00[0-4]'s\b", text):
                yield f"{path}:{number}: cite the paper by its authors (docs/papers.md), not by a number."


def main() -> int:
    problems = [line for folder in FOLDERS for line in check_words(folder)]
    problems += [*check_repeats(PACKAGE), *check_citations(PACKAGE)]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
