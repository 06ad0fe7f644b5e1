"""The checker as a program of its own: python -m discreet.verify CARD|RUN prints one JSON object."""

import json
import sys
from pathlib import Path

from discreet.verify.card_reader import UnreadableCard
from discreet.verify.path_check import EXIT_CODES, as_data, check_path, overall

if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit("Usage: python -m discreet.verify CARD|RUN (exit codes: 0 proved, 4 refuted, 5 can't tell)")
    try:
        checked = check_path(Path(sys.argv[1]))
    except UnreadableCard as problem:
        sys.stderr.write(f"Error: {problem}\n")
        sys.exit(2)
    sys.stdout.write(json.dumps(as_data(checked), indent=2) + "\n")
    sys.exit(EXIT_CODES[overall(checked)])
