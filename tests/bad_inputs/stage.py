"""A folder with one valid file of every kind, in which bad inputs are tried one after the other."""

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from discreet.cli.main import run
from tests.deploy.example_sites import PLAIN, copy_site
from tests.small_experiment import SMALL

TABLE = "clinic,age,back\na,30,yes\na,40,no\nb,50,yes\nb,60,no\nc,35,yes\nc,45,no\n"
RANGES = '[ranges]\nage = { min = 0, max = 100 }\nback = { values = ["no", "yes"] }\n'
TABLED = SMALL.replace(
    'task = { kind = "digits", clients = 3 }',
    'task = { kind = "csv", path = "visits.csv", client = "clinic", label = "back", ranges = '
    '{ age = { min = 0, max = 100 }, back = { values = ["no", "yes"] } } }',
)
TUNED = SMALL.replace("clients = 3 }", "clients = 3, validation_fraction = 0.2 }") + (
    "\n[tune]\ntrials = 2\n[tune.space.rounds]\nchoices = [1]\n"
)
COMMANDS = (  # what makes the files, in this order
    "ledger create ledger.jsonl --epsilon 4 --delta 1e-4",
    "run small.toml --out run --set rounds=2",
    "run tabled.toml --out tabled --set rounds=1",
    "audit run --runs 1 --canaries 20",
    "compare small.toml --seeds 1 --out compared --set rounds=1",
    "tune tuned.toml --public-data --out tuned",
)


@dataclass(frozen=True)
class Stage:
    """The folder `here`, which `restore` makes as it was; the state folder of the user is below it."""

    here: Path
    kept: Path

    @classmethod
    def build(cls, folder: Path) -> "Stage":
        """Make one valid file of every kind. The state folder and the current one must be `folder / "here"`."""
        here = folder / "here"
        texts = {"small.toml": SMALL, "tabled.toml": TABLED, "tuned.toml": TUNED}
        for name, text in {**texts, "visits.csv": TABLE, "ranges.toml": RANGES}.items():
            (here / name).write_text(text)
        for line in COMMANDS:
            assert run(line.split()) == 0, line
        (here / "card.json").write_text((here / "run" / "guarantee.json").read_text())
        entry = {"sha256": "0" * 64, "path": "part.py", "date": "2026-01-01"}
        (here / "state" / "discreet" / "trusted.json").write_text(json.dumps([entry]))
        copy_site(here / "sites", PLAIN)
        shutil.copytree(here, folder / "kept", symlinks=True)
        return cls(here, folder / "kept")

    def restore(self) -> None:
        """Make the folder as it was built. Most tests leave it so, and reading it is quicker than copying."""
        if _read_folder(self.here) == _read_folder(self.kept):
            return
        for path in self.here.iterdir():
            path.unlink() if path.is_symlink() or not path.is_dir() else shutil.rmtree(path)
        shutil.copytree(self.kept, self.here, dirs_exist_ok=True, symlinks=True)

    def content(self) -> dict[str, bytes | str | None]:
        """Return every path in the folder with its bytes, its link's target, or None for a folder."""
        return _read_folder(self.here)


def _read_folder(folder: Path) -> dict[str, bytes | str | None]:
    """Return the paths in a folder with their contents, without locks, which hold nothing."""
    found: dict[str, bytes | str | None] = {}
    for above, folders, files in os.walk(folder):
        for name in (*folders, *(each for each in files if not each.endswith(".lock"))):
            path = Path(above) / name
            key = str(path.relative_to(folder))
            if path.is_symlink():
                found[key] = os.readlink(path)
            else:
                found[key] = None if path.is_dir() else path.read_bytes() if path.is_file() else "a special file"
    return found
