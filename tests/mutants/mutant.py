"""A mutant: one fault as a small patch of the package, and the test that is about it."""

import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "discreet"
FOLDER = Path(__file__).parent


class DoesNotApply(Exception):
    """The code that a mutant changes no longer exists, or the change is not valid Python."""


@dataclass(frozen=True)
class Mutant:
    """In `file` of the package, `find` is replaced by `replace`; then `test`, a pytest node id, must fail.

    `fault` is one sentence: what is wrong, and what it would reveal.
    """

    area: str
    id: str
    fault: str
    file: str
    find: str
    replace: str
    test: str

    def patch(self, package: Path = PACKAGE) -> str:
        """Return the text of the file with the fault in it."""
        text = (package / self.file).read_text(encoding="utf-8")
        if (count := text.count(self.find)) != 1:
            raise DoesNotApply(
                f"{self.id}: its `find` must be in {self.file} exactly once, and is there {count} times. "
                f"Update tests/mutants/{self.area}.toml to the code as it is now."
            )
        changed = text.replace(self.find, self.replace)
        try:
            compile(changed, self.file, "exec")
        except SyntaxError as error:
            raise DoesNotApply(f"{self.id}: {self.file} is no Python once it is patched ({error}).") from None
        return changed


def load_mutants(folder: Path = FOLDER) -> list[Mutant]:
    """Return all mutants by area: one file for each area, in the order of their names."""
    found = [
        Mutant(area=path.stem, **entry)
        for path in sorted(folder.glob("*.toml"))
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]
    ]
    twice = [name for name, count in Counter(each.id for each in found).items() if count > 1]
    if twice:
        raise ValueError(f"Mutants must have different ids, and {twice} are used twice.")
    return found
