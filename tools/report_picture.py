"""Write docs/images/report.png: the page of the built-in experiment's run, as Chromium shows it.

Needs the command `chromium`: `.venv/bin/python tools/report_picture.py`
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

TARGET = Path(__file__).parent.parent / "docs" / "images" / "report.png"
SIZE = "1280,1100"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        subprocess.run(
            [sys.executable, "-m", "discreet", "run", "--out", str(run), "--json"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium has no sandbox for root
        options = ["--headless", "--disable-gpu", "--hide-scrollbars", f"--window-size={SIZE}"]
        page = (run / "report.html").as_uri()
        subprocess.run(
            ["chromium", *sandbox, *options, f"--screenshot={TARGET}", page], check=True, stderr=subprocess.DEVNULL
        )
    sys.stdout.write(f"{TARGET}: {TARGET.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main()
