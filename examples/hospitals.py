"""The tables of three hospitals that don't exist, and what a server needs to train on them: for docs/guides/deploy.md.

    python examples/hospitals.py FOLDER

Each hospital's patients differ a little. Who comes back is a coin whose odds rise with age, days and earlier visits.
"""

import csv
import sys
from pathlib import Path

import numpy as np

HOSPITALS = {"north": (480, 66.0), "south": (350, 58.0), "east": (410, 62.0)}  # patients, and their mean age
STAND_IN = (100, 62.0)

RANGES = """\
[columns]
age = { min = 20, max = 100 }
days = { min = 0, max = 20 }
earlier = { min = 0, max = 6 }
sex = { values = ["f", "m"] }
readmitted = { values = ["no", "yes"] }
"""

EXPERIMENT = """\
rounds = 5
model = { kind = "linear" }

[task]
kind = "csv"
path = "stand_in.csv"           # the server's own rows, of the same columns: nobody's secret
client = "hospital"
label = "readmitted"
ranges = "ranges.toml"
test_fraction = 0.0

[privacy]
unit = "example"
against = "server"
epsilon = 3.0
delta = 1e-4

[algorithm]
recipe = "ddp_fedavg"           # a secure sum, with noise enough in it when one client drops out
learning_rate = 10.0
clip_norm = 0.5
sampling_rate = 0.5
dropouts = 1
"""


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(7)
    for name, (patients, age) in {**HOSPITALS, "stand_in": STAND_IN}.items():
        with (folder / f"{name}.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["hospital", "age", "days", "earlier", "sex", "readmitted"])
            rows.writerows(_patients(name, patients, age, generator))
    (folder / "ranges.toml").write_text(RANGES)
    (folder / "visits.toml").write_text(EXPERIMENT)


def _patients(name: str, count: int, mean: float, generator: np.random.Generator) -> list[list[object]]:
    age = generator.normal(mean, 15, count).clip(20, 100).round().astype(int)
    days = generator.gamma(3.0, 3.0, count).clip(1, 20).round().astype(int)
    earlier = generator.poisson(2.0, count).clip(0, 6)
    sex = generator.choice(["f", "m"], count)
    odds = 0.08 * (age - 60) + 0.2 * (days - 9) + 0.6 * (earlier - 2)
    back = generator.random(count) < 1 / (1 + np.exp(-odds))
    return [list(row) for row in zip([name] * count, age, days, earlier, sex, np.where(back, "yes", "no"), strict=True)]


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
