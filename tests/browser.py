"""The browser that tests open pages with: the one that the machine has."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
WIDE, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}


def find_chromium() -> str | None:
    """The program of Chromium or Chrome: the one that SUFFICE_CHROMIUM names, or the first on the path."""
    return os.environ.get("SUFFICE_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser of Playwright; tests skip where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install 'suffice[dev]'")
    program = find_chromium()
    if program is None:
        pytest.skip("needs Chromium or Chrome; name its program in SUFFICE_CHROMIUM")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()


class Watched:
    """A page, with everything that it says, and asks of the network.

    Attributes:
        page: Of Playwright.
        said: Messages of its console, and errors that nobody caught.
        asked: Addresses that are neither files nor part of the page.
    """

    def __init__(self, browser: Any, *, allowed: tuple[str, ...] = ("file:", "data:", "blob:"), **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        self.page.on("request", lambda one: None if one.url.startswith(allowed) else self.asked.append(one.url))

    @property
    def overflow(self) -> int:
        """Pixels by which the page is wider than its window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))
