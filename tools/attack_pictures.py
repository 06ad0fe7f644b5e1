"""Write the pictures of docs/guides/attacks.md: three attacks on the built-in experiment, with fixed seeds."""

import json
import sys

from generated_file import ROOT

from discreet.api.run_attack import AttackKind, AttackOptions, attack_source
from discreet.experiment.configuration.experiment_file import load_experiment
from discreet.report.attack_page import save_attack_picture

IMAGES = ROOT / "docs" / "images"
SEED = 7
KINDS: tuple[AttackKind, ...] = ("inversion", "labels", "membership")


def main() -> int:
    """Attack the built-in experiment, draw each attack, and print what it found."""
    for kind in KINDS:
        source = load_experiment(None, (f"seed={SEED}",))
        found = attack_source(source, kind, AttackOptions(compare=kind == "membership", seed=SEED))
        path = save_attack_picture(found.to_plain(), IMAGES / f"attack_{kind}.svg")
        print(f"wrote {path.relative_to(ROOT)}", *found.sentences(), sep="\n  ")
        if kind == "membership":
            rates = [
                [run["name"], each["name"], each["area"]] for run in found.to_plain()["runs"] for each in run["attacks"]
            ]
            print(json.dumps(rates))
    return 0


if __name__ == "__main__":
    sys.exit(main())
