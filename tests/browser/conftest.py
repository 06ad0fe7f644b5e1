"""Headless Chromium, with the planner's page in it."""

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from discreet.planning.planner.planner_server import PlannerServer
from tests.planning.planner.conftest import built_in_start, serve_planner


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        pytest.fail("There is no Chromium here; Debian's package is called chromium.")
    options = ["--no-sandbox"] if os.geteuid() == 0 else []  # root has no sandbox
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=path, args=options)
        yield opened
        opened.close()


@pytest.fixture
def planner() -> Iterator[PlannerServer]:
    with serve_planner(built_in_start()) as server:
        yield server


class PageLog:
    """The messages that the page logged, and the requests that it made."""

    def __init__(self, page: Any) -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.on("console", self._log_message)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    def _log_message(self, message: Any) -> None:
        if "400 (Bad Request)" not in message.text:  # the browser logs this itself for a refused number
            self.complaints.append(message.text)


@pytest.fixture
def page(browser: Any, planner: PlannerServer) -> Iterator[Any]:
    """The planner's page. In every test the page must log no message and request nothing elsewhere."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    opened = context.new_page()
    heard = PageLog(opened)
    opened.goto(planner.url)
    yield opened
    assert heard.complaints == []
    assert all(each.startswith((planner.url, "data:")) for each in heard.requests)
    context.close()
