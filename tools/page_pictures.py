"""Write docs/images: the page of the built-in experiment's run, and the planner's page, as Chromium shows them.

Needs what `make test-browser` needs: `.venv/bin/python tools/page_pictures.py`
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from threading import Thread

from playwright.sync_api import sync_playwright

from discreet import api
from discreet.experiment.configuration import experiment_file
from discreet.planning.planner.planner_server import open_planner
from discreet.planning.planner.slider_start import start_position

FOLDER = Path(__file__).parent.parent / "docs" / "images"


def main() -> None:
    picture_report()
    picture_planner()


def picture_report() -> None:
    """Run the built-in experiment, and take a picture of its page."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        command = [sys.executable, "-m", "discreet", "run", "--out", str(run), "--json"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        take_picture((run / "report.html").as_uri(), FOLDER / "report.png", height=1100)


def picture_planner() -> None:
    """Take a picture of the planner on the built-in experiment."""
    source = experiment_file.load_experiment()
    with open_planner(start_position(source, api.prepare_job(source).terms)) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            take_picture(server.url, FOLDER / "plan.png", height=1070)
        finally:
            server.shutdown()
            thread.join()


def take_picture(address: str, target: Path, height: int) -> None:
    """Write the top of a page to a file, in a light window."""
    options = ["--no-sandbox"] if os.geteuid() == 0 else []  # root has no sandbox
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=options)
        page = browser.new_page(viewport={"width": 1280, "height": height}, color_scheme="light")
        page.goto(address)
        page.screenshot(path=target)
        browser.close()
    sys.stdout.write(f"{target}: {target.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main()
