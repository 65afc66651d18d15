"""The inbox of a bad day: however many are open, the worst come first, the counts are true, and mine are there."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import pytest
from django.test import Client

from frontend.components.incident_rows import shown_state
from frontend.components.open_incidents import open_incidents_by_state
from frontend.screens.incidents.inbox import PAGE_SIZE
from incidents.models import Incident, IncidentState, MessageState, Subscription
from lakehub.accounts.models import User
from lakehub.catalog.models import Dataset
from quality.models import Category
from tests import factories as make
from tests.factories import HOUR, MINUTE, NOW

MANY = 230


def text_of(page: Client, where: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.get(where).content.decode()))


def shown_at(page: Client, where: str) -> list[int]:
    return [
        int(number) for number in re.findall(r'class="name" href="/incidents/(\d+)">', page.get(where).content.decode())
    ]


@pytest.fixture
def flood(page: Client) -> list[Incident]:
    """Of a dataset of the least tier, all older than what the fleet has."""
    dataset = make.dataset("flood", tier=5)
    opened = [
        Incident(
            dataset=dataset, category=Category.OTHERS, title=f"flood {at}", opened_at=NOW - 40 * 24 * HOUR + at * MINUTE
        )
        for at in range(MANY)
    ]
    return Incident.objects.bulk_create(opened)


@pytest.fixture
def newest(flood: list[Incident], ines: User) -> Incident:
    """It opened this minute, in a dataset of tier 0, and is mine."""
    return make.incident(
        Dataset.objects.get(name="fare_inputs"), Category.FRESHNESS, title="late", opened_at=NOW, assignee=ines
    )


def test_the_worst_come_first_however_new_they_are(page: Client, newest: Incident) -> None:
    assert shown_at(page, "/incidents")[0] == newest.pk
    assert newest.pk in shown_at(page, "/incidents?view=mine")


def test_every_page_has_its_part_and_none_is_shown_twice(page: Client, newest: Incident) -> None:
    pages = [shown_at(page, f"/incidents?page={number}") for number in range(1, 6)]
    assert len(pages[0]) >= PAGE_SIZE  # and what was resolved today
    shown = [number for page_numbers in pages for number in dict.fromkeys(page_numbers)]
    assert set(Incident.objects.filter(resolved_at=None).values_list("pk", flat=True)) <= set(shown)
    assert f"1 to {PAGE_SIZE} of 235 incidents" in text_of(page, "/incidents")
    assert f"{PAGE_SIZE + 1} to {2 * PAGE_SIZE} of 235 incidents" in text_of(page, "/incidents?page=2")


def test_the_counts_are_of_all(page: Client, newest: Incident, flood: list[Incident], ines: User) -> None:
    Subscription.objects.create(user=ines, dataset=flood[0].dataset, created_at=NOW)
    chips = "Open 235 Mine 2 Unassigned 233 Followed 230 Suppressed 1 Snoozed 1 Resolved, 7 d 1"
    assert chips in text_of(page, "/incidents")
    assert f"1 to {PAGE_SIZE} of 230 incidents" in text_of(page, "/incidents?view=followed")


def test_what_was_resolved_today_is_counted_too(page: Client, flood: list[Incident]) -> None:
    Incident.objects.filter(pk__in=[incident.pk for incident in flood[:30]]).update(
        state=IncidentState.RESOLVED, resolved_at=NOW - HOUR, resolution="auto"
    )
    assert "Resolved today 20 of 31 incidents" in text_of(page, "/incidents")
    assert "Resolved today" not in text_of(page, "/incidents?page=2")


def test_the_first_page_counts_all_and_shows_the_worst(page: Client, newest: Incident) -> None:
    html = page.get("/").content.decode()
    assert f'href="/incidents/{newest.pk}"' in html
    assert "233 things need a decision" in html


def test_where_a_bulk_action_came_from_is_where_it_goes_back(page: Client, newest: Incident) -> None:
    form = {"incident": [newest.pk], "action": "acknowledge", "next": "/incidents?view=mine"}
    assert page.post("/incidents/together", form).headers["Location"] == "/incidents?view=mine"


def in_every_state(dataset: Dataset) -> Iterator[Incident]:
    """Each state, snoozed, over its snooze or not; a message of it is held or not."""
    snoozes = (None, NOW - HOUR, NOW, NOW + HOUR)
    reports = (
        IncidentState.REPORTED,
        IncidentState.WAITING,
        IncidentState.MATCHED,
        IncidentState.REJECTED,
        IncidentState.ACKNOWLEDGED,
    )
    kinds = [(IncidentState.OPEN, False), (IncidentState.ACKNOWLEDGED, False), *((state, True) for state in reports)]
    for (state, is_report), until, held in itertools.product(kinds, snoozes, (False, True)):
        made = make.incident(dataset, state=state, reported=is_report, snoozed_until=until)
        if held:
            make.message(made, MessageState.HELD, suppressed_since=NOW)
        yield made


@pytest.mark.parametrize("grace_until", [None, NOW, NOW + HOUR])
def test_the_database_says_of_many_what_is_said_of_one(page: Client, grace_until: object) -> None:
    made = {incident.pk for incident in in_every_state(make.dataset("one", grace_until=grace_until))}
    incidents = list(open_incidents_by_state(now=NOW).filter(pk__in=made))
    assert len(incidents) == 56
    assert [incident.shown for incident in incidents] == [shown_state(incident, now=NOW) for incident in incidents]  # type: ignore[attr-defined]
