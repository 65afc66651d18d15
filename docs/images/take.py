"""The pictures of the README, from a demo that is served: `.venv/bin/python docs/images/take.py`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

ADDRESS = os.environ.get("LAKEHUB_BASE_URL", "http://127.0.0.1:8000")
INCIDENT = f"/incidents/{os.environ.get('INCIDENT', '1')}"
HERE = Path(__file__).parent
WIDE, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
PICTURES: Mapping[str, tuple[str, str, dict[str, int]]] = {
    "datasets": ("/datasets", "light", WIDE),
    "dataset": ("/datasets/flights", "light", WIDE),
    "incident": (INCIDENT, "light", WIDE),
    "incident-dark": (INCIDENT, "dark", WIDE),
    "incident-phone": (INCIDENT, "light", PHONE),
}


def main() -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, (path, theme, size) in PICTURES.items():
            context = browser.new_context(viewport=size, color_scheme=theme, device_scale_factor=1)
            page = context.new_page()
            sign_in(page)
            page.goto(ADDRESS + path)
            page.wait_for_load_state("networkidle")
            page.screenshot(path=HERE / f"{name}.png")
            context.close()
        browser.close()


def sign_in(page: Page) -> None:
    page.goto(f"{ADDRESS}/sign-in")
    page.locator("input[name=username]").fill("ines")
    page.locator("input[name=password]").fill("flights-2013")
    page.locator("input[name=password]").press("Enter")
    page.wait_for_url(lambda url: "sign-in" not in url)


if __name__ == "__main__":
    main()
