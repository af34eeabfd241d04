"""A headless Chromium that opens reports (Debian's chromium and chromium-driver, and the package selenium)."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BROWSERS, DRIVERS = ("chromium", "chromium-browser", "google-chrome"), ("chromedriver",)
AXE = os.environ.get("TFGW_AXE")
"""Path of axe.min.js, from the npm package axe-core."""


def unavailable_reason() -> str | None:
    """What is missing to open a page; ``None`` if nothing is."""
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "needs the package selenium"
    for names in (BROWSERS, DRIVERS):
        if not any(map(shutil.which, names)):
            return f"needs {names[0]}"
    return None


@contextmanager
def opened(page: Path, *, width: int = 1440, dark: bool = False, media: str = "screen") -> Iterator[Any]:
    """A browser that shows the page."""
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService

    options = ChromeOptions()
    options.binary_location = next(filter(None, map(shutil.which, BROWSERS)))
    for argument in ("headless=new", "no-sandbox", "disable-gpu", "hide-scrollbars", "disable-dev-shm-usage"):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = Chrome(options=options, service=ChromeService(shutil.which(DRIVERS[0])))
    try:
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": [scheme]})
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.get(page.resolve().as_uri())
        yield browser
    finally:
        browser.quit()


def requests(browser: Any) -> list[str]:
    """Addresses that the page asked for, besides itself."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    return [url for url in sent if not url.startswith(("data:", browser.current_url.split("#")[0]))]


def console(browser: Any) -> list[str]:
    """Messages of the console."""
    return [entry["message"] for entry in browser.get_log("browser")]


def violations(browser: Any) -> list[str]:
    """Serious findings of axe-core."""
    if AXE is None:
        raise ValueError("TFGW_AXE: missing, it names the axe.min.js of axe-core")
    browser.set_script_timeout(300)
    browser.execute_script(Path(AXE).read_text())
    found = browser.execute_async_script("axe.run().then(arguments[arguments.length - 1])")
    serious = [one for one in found["violations"] if one["impact"] in ("serious", "critical")]
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]} ({len(one['nodes'])})" for one in serious]
