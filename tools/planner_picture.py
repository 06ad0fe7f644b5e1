"""Write docs/images/plan.png: the planner's page on the built-in experiment, as Chromium shows it.

Needs what `make test-browser` needs: `.venv/bin/python tools/planner_picture.py`
"""

import os
import shutil
import sys
from pathlib import Path
from threading import Thread

from playwright.sync_api import expect, sync_playwright

from discreet import api
from discreet.experiment.configuration import experiment_file
from discreet.planning.planner.planner_server import PlannerServer, open_planner
from discreet.planning.planner.slider_start import start_position

TARGET = Path(__file__).parent.parent / "docs" / "images" / "plan.png"
SIZE = {"width": 1280, "height": 1070}


def main() -> None:
    with open_planner(start_position(api.prepare_job(experiment_file.load_experiment()))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            take_picture(server)
        finally:
            server.shutdown()
            thread.join()
    sys.stdout.write(f"{TARGET}: {TARGET.stat().st_size:,} bytes\n")


def take_picture(server: PlannerServer) -> None:
    options = ["--no-sandbox"] if os.geteuid() == 0 else []  # root has no sandbox
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=options)
        page = browser.new_page(viewport=SIZE, color_scheme="light")
        page.goto(server.url)
        expect(page.locator("figure svg")).to_have_count(4)
        TARGET.parent.mkdir(exist_ok=True)
        page.screenshot(path=TARGET)
        browser.close()


if __name__ == "__main__":
    main()
