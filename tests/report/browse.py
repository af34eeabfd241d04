"""Open reports as people do, and say what is wrong with them; screenshots are for looking at.

    TFGW_AXE=.../axe.min.js python -m tests.report.browse FOLDER report.html ...

Each is opened at 390 and 1,440 pixels, light, dark and as printed: console, requests, width, axe-core; a point of the
map is hovered over and clicked.
"""

import base64
import sys
from pathlib import Path
from typing import Any

from tests.report.browser import console, opened, requests, violations

LOOKS: dict[str, dict[str, Any]] = {"light": {}, "dark": {"dark": True}, "print": {"media": "print"}}


def look(page: Path, folder: Path, name: str, width: int) -> list[str]:
    """Everything that is wrong with one look of a page."""
    from selenium.webdriver import ActionChains

    with opened(page, width=width, **LOOKS[name]) as browser:
        found = [f"asks for {url}" for url in requests(browser)] + [f"console: {text}" for text in console(browser)]
        if browser.execute_script("return document.documentElement.scrollWidth") > width:
            found.append("sticks out")
        height = browser.execute_script("return document.documentElement.scrollHeight")
        clip = {"x": 0, "y": 0, "width": width, "height": min(height, 12_000), "scale": 1}
        picture = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
        (folder / f"{page.stem}-{width}-{name}.png").write_bytes(base64.b64decode(picture["data"]))
        if name != "print":
            mark = browser.find_elements("css selector", ".plane .mark")[-1]  # the last is on top
            browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", mark)
            ActionChains(browser).move_to_element(mark).click().perform()
            shown = browser.execute_script("return document.querySelector('.tip').textContent")
            kept = browser.find_element("css selector", ".kept").text
            if not shown or not kept.startswith(shown.split("\n")[0]):
                found.append(f"hover and click: {shown!r}, {kept!r}")
            if (width < 600) != (name == "dark"):  # it takes a while: light on a phone, dark on a desk
                found += [f"axe: {text}" for text in violations(browser)]
        return found


def main() -> int:
    folder, *pages = map(Path, sys.argv[1:])
    wrong = 0
    for page in pages:
        for name in LOOKS:
            for width in (390, 1440):
                found = look(page, folder, name, width)
                wrong += len(found)
                print(page.stem, width, name, *(found or ["ok"]), sep="\n  ", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
