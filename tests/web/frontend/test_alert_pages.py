"""The alerts of a dataset and the routes of a team: what they say, and changing them."""

from __future__ import annotations

import html as entities
import re
from typing import Any

import pytest
from django.test import Client

from incidents.domain.alerting.suppression import DEFAULT_PAIRS
from incidents.models import Alert, Incident, Route
from incidents.notifications.send_conditions import suppression_pairs
from lakehub.accounts.models import Team
from lakehub.catalog.models import Dataset
from quality.models import Category
from tests import factories as make

ALERTS = "/datasets/flights/alerts"
ROUTES = "/teams/flight-ops/routes"
ROUTE = {
    "channel": "email",
    "address": "ops@example.org",
    "least": "high",
    "zone": "Europe/Lisbon",
    "digest": "none",
    "enabled": "on",
}


def text_of(answer: Any) -> str:
    return entities.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode())))


def test_it_says_how_loud_each_category_is_and_why(page: Client) -> None:
    text = text_of(page.get(ALERTS))
    assert "Freshness high" in text
    assert "Others medium Tier 1, urgency page; others is one step quieter." in text
    assert "Held while freshness fails." in text
    assert "log flight-ops" in text


def test_a_severity_is_set_and_says_by_whom(page: Client, flights: Dataset) -> None:
    answer = page.post(f"{ALERTS}/others", {"severity": "critical", "why": "billing reads it"}, follow=True)
    text = text_of(answer)
    assert "Others is critical." in text
    assert re.search(r"Set by ines, .*: billing reads it\. The template says medium", text)
    page.post(f"{ALERTS}/others", {"as_made": "1", "severity": "critical"})
    assert Alert.objects.get(dataset=flights, category="others").override == {}


def test_muting_needs_a_reason(page: Client) -> None:
    answer = page.post(f"{ALERTS}/others", {"muted": "on"}, follow=True)
    assert "Say why nobody is to be told" in text_of(answer)
    page.post(f"{ALERTS}/others", {"muted": "on", "why": "moves"})
    assert "Muted" in text_of(page.get(ALERTS))


def test_what_holds_what_is_changed_and_a_cycle_is_named(page: Client, flights: Dataset) -> None:
    page.post("/datasets/flights/suppress", {"by": "completeness", "suppresses": "others", "counts": "1"})
    assert ("completeness", "others") in suppression_pairs(flights)
    answer = page.post(
        "/datasets/flights/suppress", {"by": "others", "suppresses": "freshness", "counts": "1"}, follow=True
    )
    assert "freshness → others → freshness" in text_of(answer)
    page.post("/datasets/flights/suppress", {"by": "freshness", "suppresses": "others", "counts": "0"})
    assert "Freshness does not hold others" in text_of(page.get(ALERTS))
    page.post("/datasets/flights/suppress/reset")
    assert suppression_pairs(flights) == DEFAULT_PAIRS


def test_open_incidents_upstream_are_shown(page: Client, flights: Dataset) -> None:
    planes = Dataset.objects.get(name="planes")
    incident = make.incident(planes, Category.FRESHNESS, title="planes is late")
    text = text_of(page.get(ALERTS))
    assert f"#{incident.pk} planes" in text
    assert "read directly" in text


def test_a_viewer_reads_and_changes_nothing(guest: Client, flights: Dataset) -> None:
    assert "Change…" not in text_of(guest.get(ALERTS))
    assert guest.post(f"{ALERTS}/others", {"severity": "low"}).status_code == 403
    assert guest.post("/datasets/flights/suppress/reset").status_code == 403
    assert guest.post(ROUTES, ROUTE).status_code == 403
    assert "Add a route" not in text_of(guest.get(ROUTES))


# Routes


def test_without_a_route_the_page_says_where_messages_go(page: Client, flights: Dataset) -> None:
    assert "Its messages go to log flight-ops." in text_of(page.get(ROUTES))
    Team.objects.filter(name="flight-ops").update(email="ops@example.org")
    assert "Its messages go to email ops@example.org." in text_of(page.get(ROUTES))


def test_a_route_is_added_changed_and_removed(page: Client, flights: Dataset) -> None:
    changed = {**ROUTE, "tiers": ["0", "1"], "quiet_from": "22:00", "quiet_to": "07:00", "quiet_days": ["0", "4"]}
    assert "The route is added." in text_of(page.post(ROUTES, changed, follow=True))
    route = Route.objects.get()
    assert (route.tiers, route.quiet_days, route.least) == ([0, 1], [0, 4], "high")
    text = text_of(page.get(ROUTES))
    assert "tier 0, 1, all categories, high and louder" in text
    assert "at once, quiet 22:00 to 07:00 from Mon Fri Europe/Lisbon" in text
    form = page.get(f"{ROUTES}/{route.pk}").content.decode()
    assert re.search(r'name="tiers" value="1" checked', form)
    assert re.search(r'name="quiet_days" value="4" checked', form)
    page.post(f"{ROUTES}/{route.pk}", {**ROUTE, "digest": "daily", "digest_at": "09:30"})
    assert "daily digest at 09:30" in text_of(page.get(ROUTES))
    page.post(f"{ROUTES}/{route.pk}/remove")
    assert not Route.objects.exists()


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"address": "nobody"}, "`nobody` is no e-mail address"),
        ({"quiet_from": "late"}, "`late` is no time of day"),
        ({"quiet_from": "22:00"}, "a beginning and an end"),
        ({"zone": "Europe/Lisbn"}, "Did you mean `Europe/Lisbon`"),
        ({"tiers": ["x"]}, "There is no tier `x`"),
    ],
)
def test_what_cannot_work_is_said_beside_the_field(
    page: Client, flights: Dataset, changes: dict[str, Any], why: str
) -> None:
    answer = page.post(ROUTES, {**ROUTE, **changes})
    assert answer.status_code == 422
    assert why.replace("`", "") in re.sub(r"\s+([?:,.])", r"\1", re.sub(r"\s+", " ", text_of(answer)))
    assert not Route.objects.exists()


def test_a_team_or_a_route_that_is_not_there_is_named(page: Client, flights: Dataset) -> None:
    assert "Did you mean" in text_of(page.get("/teams/flight-opps/routes"))
    assert page.get(f"{ROUTES}/4711").status_code == 404
    assert page.post(f"{ROUTES}/4711", ROUTE).status_code == 404


# Snooze, and upstream, on the page of an incident


def failing() -> Incident:
    return Incident.objects.get(dataset__name="flights", category=Category.CONSISTENCY)


@pytest.mark.parametrize(
    ("choice", "until"),
    [
        ({"ends": "worse"}, "until it gets worse"),
        ({"ends": "failures", "failures": "5"}, "for 5 more failures"),
        ({"ends": "until", "until": "2026-11-18T09:00"}, "until 18 Nov 09:00"),
    ],
)
def test_an_incident_is_snoozed_until_what_was_chosen(page: Client, choice: dict[str, str], until: str) -> None:
    where = f"/incidents/{failing().pk}"
    answer = page.post(f"{where}/snooze", choice, follow=True)
    assert f"Messages about #{failing().pk} are snoozed {until}." in text_of(answer)
    assert f"Snoozed {until}." in text_of(answer)
    assert "is snoozed no longer" in text_of(page.post(f"{where}/wake", follow=True))
    assert failing().snoozed_until is None


@pytest.mark.parametrize(
    ("choice", "why"),
    [
        ({"ends": "until", "until": ""}, "Say until when: a time"),
        ({"ends": "failures", "failures": "x"}, "1 to 1000 more failures"),
    ],
)
def test_a_snooze_that_says_no_end_is_refused(page: Client, choice: dict[str, str], why: str) -> None:
    assert why in text_of(page.post(f"/incidents/{failing().pk}/snooze", choice, follow=True))
    assert failing().snoozed_until is None


def test_an_incident_shows_what_is_open_upstream(page: Client) -> None:
    incident = make.incident(Dataset.objects.get(name="planes"), Category.FRESHNESS, title="planes is late")
    text = text_of(page.get(f"/incidents/{failing().pk}"))
    assert f"#{incident.pk} planes freshness read directly planes is late" in text
