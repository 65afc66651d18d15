"""One action on many incidents, from their list."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from incidents.models import Incident


def test_several_at_once(page: Client, late: Incident, cross_dc: Incident) -> None:
    numbers = {"incident": [late.pk, cross_dc.pk], "action": "acknowledge"}
    html = page.post("/incidents/together", numbers, follow=True).content.decode()
    assert f"#{late.pk} is acknowledged." in html
    assert "was faster" in html  # the other one had been acknowledged already


def test_what_was_done_to_several_is_undone_from_the_toast(page: Client, late: Incident) -> None:
    html = page.post(
        "/incidents/together", {"incident": [late.pk], "action": "acknowledge"}, follow=True
    ).content.decode()
    toast = re.findall(r'<form class="toast" method="post" action="([^"]+)".*?</form>', html)
    html = page.post(toast[0], follow=True).content.decode()
    assert f"#{late.pk} is as before." in html
    assert Incident.objects.get(pk=late.pk).state == "open"
    assert "taken back already" in page.post(toast[0], follow=True).content.decode()


@pytest.mark.parametrize(
    ("form", "field", "value"),
    [
        ({"action": "snooze", "until": "2026-11-18T09:00"}, "state", "open"),
        ({"action": "assign", "assignee": "ines"}, "assignee__username", "ines"),
        ({"action": "resolve", "how": "planned_change", "why": "Moved"}, "false_positive", "planned_change"),
        ({"action": "resolve", "how": "accepted", "why": "Lost"}, "resolution", "accepted"),
    ],
)
def test_the_bar_of_the_list_does_what_a_page_does(
    page: Client, late: Incident, form: dict[str, str], field: str, value: str
) -> None:
    html = page.post("/incidents/together", {"incident": [late.pk], **form}, follow=True).content.decode()
    assert 'class="toast"' in html
    assert Incident.objects.filter(pk=late.pk).values_list(field, flat=True).get() == value


@pytest.mark.parametrize(
    ("choice", "until"),
    [
        ({"ends": "until", "until": "2026-11-18T09:00"}, "until 2026-11-18 14:00 UTC"),
        ({"ends": "worse"}, "until it gets worse"),
        ({"ends": "failures", "failures": "2"}, "for 2 more failures"),
    ],
)
def test_the_bar_of_the_list_snoozes_until_what_was_chosen(
    page: Client, late: Incident, choice: dict[str, str], until: str
) -> None:
    numbers = {"incident": [late.pk], "action": "snooze", **choice}
    assert f"#{late.pk} is snoozed {until}." in page.post("/incidents/together", numbers, follow=True).content.decode()
    unsaid = page.post("/incidents/together", {**numbers, "ends": "until", "until": ""}, follow=True).content.decode()
    assert "Say until when" in unsaid
    assert Incident.objects.get(pk=late.pk).snoozed_until is not None
    ended = page.post("/incidents/together", {**numbers, "action": "wake"}, follow=True).content.decode()
    assert f"#{late.pk} is snoozed no longer." in ended
    assert Incident.objects.get(pk=late.pk).snoozed_until is None


def test_what_the_bar_cannot_do_is_said(page: Client, late: Incident) -> None:
    html = page.post("/incidents/together", {"incident": [late.pk], "action": "resolve"}, follow=True).content.decode()
    assert "Say which kind of false positive" in html
    assert (
        "Choose at least one incident."
        in page.post("/incidents/together", {"action": "rerun"}, follow=True).content.decode()
    )


def test_a_guest_cannot_act_on_several_either(guest: Client, late: Incident) -> None:
    answer = guest.post("/incidents/together", {"incident": [late.pk], "action": "acknowledge"}, follow=True)
    assert (
        "To acknowledge here you need to be owner or on call or admin of team weather-data" in answer.content.decode()
    )
    late.refresh_from_db()
    assert late.state == "open"


@pytest.mark.parametrize("number", ["²", "9" * 30, "９", "-1", ""])
def test_what_is_no_number_of_an_incident_is_left_out(page: Client, late: Incident, number: str) -> None:
    ticked = {"incident": [number, late.pk], "action": "acknowledge"}
    html = page.post("/incidents/together", ticked, follow=True).content.decode()
    assert f"#{late.pk} is acknowledged." in html
