"""One tap snoozes: for an hour, until 08:00, until it gets worse."""

from __future__ import annotations

import re
from datetime import datetime

import pytest
from django.test import Client

from incidents.models import Incident
from lakehub.catalog.models import Dataset
from tests import factories as make
from tests.page_forms import PageForms

MORNING = make.NOW.replace(day=18, hour=13, minute=0)
"""08:00 in New York."""


def tap(page: Client, incident: Incident, ends: str) -> str:
    """Presses that button of the incident's page, with nothing else typed; the text of the page that follows."""
    offered = PageForms(page.get(f"/incidents/{incident.pk}").content.decode())
    form = next(form for form in offered.forms if ("ends", ends) in form.buttons)
    answer = page.post(form.action, form.body(("ends", ends)), follow=True)
    incident.refresh_from_db()
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


@pytest.mark.parametrize(
    ("ends", "until", "sentence"),
    [
        ("hour", make.NOW + make.HOUR, "are snoozed until 15:32."),
        ("morning", MORNING, "are snoozed until 18 Nov 08:00."),
    ],
)
def test_it_ends_at_the_viewers_time(page: Client, late: Incident, ends: str, until: datetime, sentence: str) -> None:
    text = tap(page, late, ends)
    assert late.snoozed_until is not None
    assert abs(late.snoozed_until - until) < make.MINUTE
    assert sentence in text


def test_until_worse_has_no_time(page: Client, late: Incident) -> None:
    assert "until it gets worse" in tap(page, late, "worse")
    assert late.snoozed_until_worse


def test_where_the_viewers_zone_is_not_known_it_is_the_datasets(page: Client, late: Incident) -> None:
    del page.cookies["zone"]
    Dataset.objects.filter(pk=late.dataset_id).update(partition_tz="Asia/Kolkata")
    tap(page, late, "morning")
    assert late.snoozed_until == make.NOW.replace(day=18, hour=2, minute=30, second=0, microsecond=0)


def test_all_that_are_ticked_are_snoozed_too(page: Client, late: Incident) -> None:
    assert 'name="action" value="snooze-morning"' in page.get("/incidents").content.decode()
    page.post("/incidents/together", {"incident": [str(late.pk)], "action": "snooze-morning"})
    late.refresh_from_db()
    assert late.snoozed_until == MORNING.replace(second=0, microsecond=0)
