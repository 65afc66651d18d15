"""The machine's own browser, a server with a fleet, and the work that beat and the workers would do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright
from pytest_django.fixtures import Settings
from pytest_django.live_server_helper import LiveServer

from incidents import tasks as incident_tasks
from lakehub.accounts.models import Role, User
from lakehub.clock.models import ClockShift
from quality import tasks as quality_tasks
from tests import factories as make
from tests import fleet
from tests.polling import scaled

FLAGS = [
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
expect.set_options(timeout=scaled(15_000))


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield running
        running.close()


@pytest.fixture(autouse=True)
def _clock_at_now(settings: Settings, transactional_db: None) -> None:
    settings.LAKEHUB_CLOCK = "shifted"
    ClockShift.move_to(make.NOW)


@pytest.fixture
def ines(transactional_db: None) -> User:
    """Owner of flight-ops, with nothing onboarded yet."""
    person = make.user("ines", first_name="Inês", last_name="Duarte")
    make.member(person, make.team("flight-ops"), Role.ADMIN)
    return person


@pytest.fixture
def whole_fleet(transactional_db: None) -> None:
    """Every state, and ines as admin of its teams."""
    fleet.build()


@pytest.fixture
def tab(browser: Browser, live_server: LiveServer) -> Iterator[Callable[..., Page]]:
    """Opens a tab with a profile of its own, in New York; `tab(path, signed_in=...)`. Options go to the browser context."""
    contexts = []

    def open_tab(path: str, *, signed_in: bool = True, **options: Any) -> Page:
        context = browser.new_context(**{"base_url": live_server.url, "timezone_id": "America/New_York", **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(scaled(15_000))
        page.goto("/sign-in")
        if signed_in:
            sign_in(page)
            page.goto(path)
        return page

    yield open_tab
    for context in contexts:
        context.close()


CONTRAST = "color-contrast"
"""The rule of axe-core that takes most of its time."""


def findings(page: Page, **options: Any) -> list[str]:
    """What axe-core finds on the page as it is now, of any severity; and whether it scrolls sideways. `options`: of `axe.run`."""
    problems = [
        f"{page.url}: {violation['impact']} {violation['id']}: {violation['nodes'][0]['html'][:120]}"
        for violation in Axe().run(page, options={"resultTypes": ["violations"], **options}).response["violations"]
    ]
    sideways = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    return [*problems, f"{page.url}: scrolls sideways by {sideways} px"] if sideways > 0 else problems


def sign_in(page: Page) -> None:
    page.get_by_label("User name").fill("ines")
    page.get_by_label("Password").fill(make.PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/")


@pytest.fixture
def work() -> Callable[[], None]:
    """What beat wakes the workers up for, done once each and in their order: the same tasks, called in this process."""

    def once() -> None:
        quality_tasks.claim_changes()
        quality_tasks.run_due()
        quality_tasks.judge_due()
        incident_tasks.process_flips()

    return once
