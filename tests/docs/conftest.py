"""The site that `make docs` built, and a browser without a network to look at it."""

import os
import shutil
from pathlib import Path

import pytest

SITE = Path(__file__).parents[2] / "build" / "docs" / "html"


@pytest.fixture(scope="session")
def site():
    """Folder of the pages."""
    if not (SITE / "objects.inv").is_file():
        pytest.fail("there is no site in build/docs/html: make docs builds it")
    return SITE


@pytest.fixture(scope="session")
def browser():
    """Debian's Chromium, driven by playwright."""
    from playwright.sync_api import sync_playwright

    found = shutil.which("chromium")
    if found is None:
        if os.environ.get("CI"):
            pytest.fail("chromium is not installed, and this is CI")
        pytest.skip("chromium is not installed")
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    with sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=found, args=flags)
        yield running
        running.close()


@pytest.fixture
def open_page(browser, site):
    """A function from a page's name to the page; requests beyond the folder of the site fail and are recorded."""
    contexts = []

    def open_one(name, width=1280, theme="light", query=""):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
        contexts.append(context)
        page = context.new_page()
        page.requested, page.errors = [], []

        def handle(route):
            if route.request.url.startswith(site.as_uri()):
                route.continue_()
            else:
                page.requested.append(route.request.url)
                route.abort()

        page.route("**/*", handle)
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        page.goto((site / name).as_uri() + query)
        return page

    yield open_one
    for context in contexts:
        context.close()
