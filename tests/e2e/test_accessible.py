"""axe-core on every page, in both themes, on a desk, a tablet and a phone: no finding of any severity, no sideways scroll."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import pyotp
import pytest
from django.utils import timezone
from playwright.sync_api import Page
from pytest_django import Settings

from incidents.models import Incident
from lakehub.accounts.models import User
from quality.models import Category, QualityTest
from tests import factories as make
from tests.e2e.conftest import CONTRAST, findings

Theme = Literal["light", "dark"]
THEMES: tuple[Theme, ...] = ("light", "dark")
WIDTHS = {"desk": 1440, "tablet": 1024, "phone": 390}
PAGES = (
    "/",
    "/datasets",
    "/datasets/flights",
    "/datasets/flights?test={test}-dc2",
    "/datasets/flights/data",
    "/datasets/flights/ingestion",
    "/datasets/flights/rejected",
    "/datasets/flights/positions",
    "/datasets/flights/loads",
    "/datasets/flights/rules?kind=accepted",
    "/datasets/flights/alerts",
    "/datasets/flights/settings",
    "/datasets/flights/tests/{key}?backtest=90",
    "/datasets/flights/new-test?expression=nulls(this.orign) < 5",
    "/business-metrics",
    "/new-metric?dataset=flights",
    "/schemas",
    "/schemas/bookings-value?version=2",
    "/schemas/bookings-value/diff?from=1&to=3",
    "/schemas/bookings-value/propose",
    "/new-schema",
    "/coverage",
    "/coverage/unverified",
    "/teams/flight-ops/routes",
    "/teams/flight-ops/messages",
    "/teams/flight-ops/messages/opened",
    "/incidents",
    "/incidents/{incident}",
    "/gate?dataset=flights&from=2026-11-14&to=2026-11-17",
    "/gate?dataset=fligths&from=soon",
    "/gate/policies?consumer=pricing&tier=0",
    "/help/glossary",
    "/incidents/report",
    "/onboarding",
    "/new-pipeline",
    "/onboarding/flights",
    "/account",
    "/account/password",
    "/account/second-step",
    "/audit",
)
DOORS = ("/sign-in", "/password-forgotten", "/password-reset/MQ/used", "/signed-out")


@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_has_a_finding(tab: Callable[..., Page], whole_fleet: None, width: str) -> None:
    page = tab("/", viewport={"width": WIDTHS[width], "height": 900}, reduced_motion="reduce")
    with_colours = width != "tablet"  # there, pages have those of the desk
    problems = [each for template in PAGES for each in problems_of(page, address(template), with_colours=with_colours)]
    assert problems == []


def test_the_door_has_no_finding(tab: Callable[..., Page], whole_fleet: None) -> None:
    page = tab("/sign-in", signed_in=False, reduced_motion="reduce")
    assert [problem for door in DOORS for problem in problems_of(page, door)] == []


@pytest.mark.parametrize("width", WIDTHS)
def test_the_second_step_has_no_finding(tab: Callable[..., Page], ines: User, settings: Settings, width: str) -> None:
    """Set up with the text of the page, then used at the door."""
    settings.LAKEHUB_REQUIRE_TOTP = "admins"
    size = {"width": WIDTHS[width], "height": 900}
    page = tab("/", signed_in=False, viewport=size, reduced_motion="reduce")
    give_password(page)
    page.wait_for_url("**/account/second-step")
    page.get_by_role("button", name="Set up a second step").click()
    problems = [problem for theme in THEMES for problem in in_theme(page, theme)]
    authenticator = pyotp.parse_uri(page.get_by_label("Text for the authenticator").inner_text())
    page.get_by_label("The code it shows now").fill(authenticator.at(timezone.now()))
    page.get_by_role("button", name="Turn on").click()
    page.get_by_text("These are your recovery codes").wait_for()
    problems += [problem for theme in THEMES for problem in in_theme(page, theme)]
    recovery_code = page.locator("pre.code").inner_text().split()[0]
    door = tab("/", signed_in=False, viewport=size, reduced_motion="reduce")
    give_password(door)
    door.wait_for_url("**/sign-in/code")
    problems += [problem for theme in THEMES for problem in in_theme(door, theme)]
    door.get_by_label("Code").fill(recovery_code)
    door.get_by_role("button", name="Continue").click()
    door.wait_for_url("**/")
    assert problems == []


def give_password(page: Page) -> None:
    page.get_by_label("User name").fill("ines")
    page.get_by_label("Password").fill(make.PASSWORD)
    page.get_by_role("button", name="Sign in").click()


def problems_of(page: Page, where: str, *, with_colours: bool = True) -> list[str]:
    """In both themes: the page is loaded once and follows what the system prefers, as it does for a person at nightfall."""
    page.goto(where)
    if not with_colours:
        return findings(page, rules={CONTRAST: {"enabled": False}})
    return [f"{theme}: {problem}" for theme in THEMES for problem in in_theme(page, theme)]


def in_theme(page: Page, theme: Theme) -> list[str]:
    """The dark theme has other colours and nothing else."""
    page.emulate_media(color_scheme=theme)
    return findings(page, **({} if theme == "light" else {"runOnly": {"type": "rule", "values": [CONTRAST]}}))


def address(template: str) -> str:
    incident = Incident.objects.get(category=Category.CONSISTENCY)
    test = QualityTest.objects.get(dataset__name="flights", category=Category.CONSISTENCY)
    return template.format(incident=incident.pk, test=test.pk, key=test.key)
