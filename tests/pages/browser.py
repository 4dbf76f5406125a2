"""Debian's Chromium under Playwright."""

import contextlib
import os

from playwright.sync_api import sync_playwright

CHROMIUM = os.environ.get("TALON_TEST_CHROMIUM", "/usr/lib/chromium/chromium")


@contextlib.contextmanager
def chromium():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--force-color-profile=srgb"])
        try:
            yield browser
        finally:
            browser.close()


def new_page(browser, width=1280, height=800, theme="light", language="en-GB", reduced=True):
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme, locale=language, timezone_id="Europe/Berlin", reduced_motion="reduce" if reduced else "no-preference")
    page = context.new_page()
    page.troubles = []
    page.on("pageerror", lambda error: page.troubles.append(f"error: {error}"))
    page.on("console", lambda message: page.troubles.append(f"console: {message.text}") if message.type == "error" and "Failed to load resource" not in message.text and "WebSocket" not in message.text else None)
    return page
