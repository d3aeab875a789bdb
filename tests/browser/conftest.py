"""A browser: Debian's Chromium, driven by playwright, with every request aborted."""

import os
import shutil

import pytest


@pytest.fixture(scope="session")
def browser():
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
def open_page(browser):
    """A function from a file to its page; requests for anything but the file fail and are recorded."""
    contexts = []

    def open_one(path, width=1280, theme="light", script=True, scale=1):
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=theme,
            java_script_enabled=script,
            device_scale_factor=scale,
        )
        contexts.append(context)
        page = context.new_page()
        page.requested, page.errors = [], []

        def handle(route):
            if route.request.url == path.as_uri():
                route.continue_()
            else:
                page.requested.append(route.request.url)
                route.abort()

        page.route("**/*", handle)
        page.add_init_script(
            "document.addEventListener('securitypolicyviolation', e => console.error('policy', e.violatedDirective))"
        )
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        page.on("console", lambda message: page.errors.append(message.text) if message.type == "error" else None)
        page.on("dialog", lambda dialog: page.errors.append(f"dialog {dialog.message}") or dialog.dismiss())
        page.goto(path.as_uri())
        return page

    yield open_one
    for context in contexts:
        context.close()
