"""Check names in the package: no participle or particle as a whole name, no file name twice, papers by their names.

A function is a verb phrase or a noun of the field, a file is a noun, a boolean is a question. This check refuses what
broke that rule most often; `make lint` runs it.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "src" / "discreet"
WORDS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
PARTICLES, PARTICIPLES, USUAL, CLASSES = (
    frozenset(WORDS[name].split()) for name in ("particles", "participles", "usual", "classes")
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
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.ClassDef) and node.name not in CLASSES:
            yield node.lineno, re.sub(r"(?<=[a-z])(?=[A-Z])", "_", node.name)


def check(folder: Path) -> list[str]:
    """Return one line for each name that is refused."""
    problems = []
    seen: dict[str, Path] = {}
    for path in sorted(folder.rglob("*.py")):
        relative = path.relative_to(folder)
        source = path.read_text(encoding="utf-8")
        if path.stem != "__init__" and is_refused(path.stem):
            problems.append(f"{relative}: a file is named by a noun, and this one by a participle or a particle.")
        if path.stem not in ("__init__", "__main__") and "cli" not in relative.parts:  # a command's file has its name
            if path.stem in seen:
                problems.append(f"{relative}: has the same name as {seen[path.stem]}.")
            seen[path.stem] = relative
        for line, name in defined_names(ast.parse(source)):
            if is_refused(name):
                problems.append(f"{relative}:{line}: {name} is a participle or a particle: use a verb or a noun.")
        for number, text in enumerate(source.splitlines(), 1):
            if re.search(r"\b[Pp]aper[s_ ]*00\d|\b00[0-4]'s\b", text):
                problems.append(
                    f"{relative}:{number}: cite the paper by its authors (docs/papers.md), not by a number."
                )
    return problems


def main(folder: Path) -> int:
    problems = check(folder)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else PACKAGE))
