"""axe-core on every page, in both themes, on a desk and on a phone: no finding of any severity, no sideways scroll."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import pytest
from playwright.sync_api import Page

from incidents.models import Incident
from quality.models import Category, QualityTest
from tests.e2e.conftest import findings

THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
WIDTHS = {"desk": 1440, "tablet": 1024, "phone": 390}
PAGES = (
    "/",
    "/datasets",
    "/datasets/flights",
    "/datasets/flights?test={test}-dc2",
    "/datasets/flights/data",
    "/datasets/flights/ingestion",
    "/datasets/flights/rules?kind=accepted",
    "/datasets/flights/alerts",
    "/datasets/flights/settings",
    "/datasets/flights/tests/{key}?backtest=90",
    "/datasets/flights/new-test?expression=nulls(this.orign) < 5",
    "/business-metrics",
    "/new-metric?dataset=flights",
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
    "/onboarding/flights",
)


@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_has_a_finding(tab: Callable[..., Page], whole_fleet: None, width: str) -> None:
    page = tab("/", viewport={"width": WIDTHS[width], "height": 900}, reduced_motion="reduce")
    problems = [problem for template in PAGES for problem in problems_of(page, address(template))]
    assert problems == []


def test_the_door_has_no_finding(tab: Callable[..., Page], whole_fleet: None) -> None:
    page = tab("/sign-in", signed_in=False, reduced_motion="reduce")
    assert problems_of(page, "/sign-in") == []


def problems_of(page: Page, where: str) -> list[str]:
    """In both themes: the page is loaded once and follows what the system prefers, as it does for a person at nightfall."""
    page.goto(where)
    return [f"{theme}: {problem}" for theme in THEMES for problem in in_theme(page, theme)]


def in_theme(page: Page, theme: Literal["light", "dark"]) -> list[str]:
    page.emulate_media(color_scheme=theme)
    return findings(page)


def address(template: str) -> str:
    incident = Incident.objects.get(category=Category.CONSISTENCY)
    test = QualityTest.objects.get(dataset__name="flights", category=Category.CONSISTENCY)
    return template.format(incident=incident.pk, test=test.pk, key=test.key)
