"""A reader reports what no test saw; the owners answer."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from incidents.models import Incident
from lakehub.accounts.models import Role
from tests import factories as make

SAID = {"dataset": "airports", "from": "2026-11-12", "category": "others", "text": "JFK is called LGA\nsince Thursday"}


@pytest.fixture
def report(guest: Client) -> Incident:
    guest.post("/incidents/report", SAID)
    return Incident.objects.get(reported=True)


def text_of(page: Client, where: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.get(where).content.decode()))


def test_everybody_may_report(guest: Client, report: Incident) -> None:
    assert report.state == "waiting"
    text = text_of(guest, f"/incidents/{report.pk}")
    assert "JFK is called LGA" in text
    assert "Reported by guest for [12 Nov, 13 Nov) in each copy." in text
    assert "To answer it you need to be" in text


def test_a_report_waits_in_every_list(page: Client, report: Incident) -> None:
    assert "1 report waits for an answer" in text_of(page, "/incidents")
    assert "Waiting for the producer" in text_of(page, "/incidents?view=reported")
    assert "3 things need a decision" in text_of(page, "/")
    assert "airports" in text_of(page, "/datasets?state=reported")


def test_what_cannot_be_a_report_is_explained_and_kept(guest: Client) -> None:
    answer = guest.post("/incidents/report", {**SAID, "dataset": "airport", "from": "soon"})
    assert answer.status_code == 422
    html = answer.content.decode()
    assert "Did you mean <code>airports</code>?" in html
    assert "since Thursday" in html
    assert "Say what is wrong" in guest.post("/incidents/report", {**SAID, "text": " "}).content.decode()
    assert not Incident.objects.filter(reported=True).exists()


def test_the_owners_reject_it_and_the_reader_insists(page: Client, guest: Client, report: Incident) -> None:
    page.post(f"/incidents/{report.pk}/answer", {"answer": "reject", "why": "It is called so"})
    report.refresh_from_db()
    assert report.state == "rejected"
    assert "Insist…" in text_of(guest, f"/incidents/{report.pk}")
    guest.post(f"/incidents/{report.pk}/answer", {"answer": "dispute", "why": "Look at the map"})
    report.refresh_from_db()
    assert report.state == "waiting"


def test_the_owners_take_it_and_declare_it_fixed(page: Client, report: Incident) -> None:
    page.post(f"/incidents/{report.pk}/acknowledge", {"revision": report.revision})
    assert "Declare fixed…" in text_of(page, f"/incidents/{report.pk}")
    answer = page.post(f"/incidents/{report.pk}/answer", {"answer": "fixed", "why": "Renamed"}, follow=True)
    assert f"#{report.pk} is declared fixed." in answer.content.decode()
    report.refresh_from_db()
    assert report.resolution == "declared_fixed"
    assert "Resolved" in text_of(page, f"/incidents/{report.pk}")


def test_only_the_owners_answer(report: Incident) -> None:
    stranger = make.user("stranger")
    make.member(stranger, make.team("pricing"), Role.ADMIN)
    client = Client()
    client.force_login(stranger)
    assert client.post(f"/incidents/{report.pk}/answer", {"answer": "reject", "why": "no"}).status_code == 403


def test_a_report_that_an_incident_explains_points_to_it(guest: Client) -> None:
    form = {"dataset": "flights", "from": "2026-11-16", "category": "consistency", "text": "Rows are missing"}
    guest.post("/incidents/report", form)
    report = Incident.objects.get(reported=True)
    assert report.state == "matched"
    assert "Explained by #" in text_of(guest, f"/incidents/{report.pk}")


def test_a_reader_says_where_and_since_when(page: Client) -> None:
    page.post("/incidents/report", {**SAID, "dc": "dc1", "since": "2026-11-17T09:30"})
    details = Incident.objects.get(reported=True).report
    assert details.copy is not None
    assert details.copy.data_center.name == "dc1"
    assert details.occurred_at == make.NOW.replace(hour=14, minute=30)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"dc": "dc7"}, "has no copy in <code>dc7</code>"),
        ({"since": "soon"}, "is not a time"),
        ({"since": "2027-11-17T09:30"}, "has not come yet"),
    ],
)
def test_a_place_or_a_time_that_cannot_be_is_explained(guest: Client, changes: dict[str, str], why: str) -> None:
    answer = guest.post("/incidents/report", {**SAID, **changes})
    assert answer.status_code == 422
    assert why in answer.content.decode()


def test_a_reader_insists_after_it_was_declared_fixed(page: Client, guest: Client, report: Incident) -> None:
    page.post(f"/incidents/{report.pk}/acknowledge")
    assert "Assign to" in text_of(page, f"/incidents/{report.pk}")
    page.post(f"/incidents/{report.pk}/answer", {"answer": "fixed", "why": "Renamed"})
    assert "Insist…" in text_of(guest, f"/incidents/{report.pk}")
    guest.post(f"/incidents/{report.pk}/answer", {"answer": "dispute", "why": "It is back"})
    report.refresh_from_db()
    assert (report.state, report.resolved_at) == ("waiting", None)


def test_what_one_follows_is_a_view_of_the_list(guest: Client, report: Incident) -> None:
    assert "Followed" not in text_of(guest, "/incidents")
    guest.post("/datasets/airports/follow", {"follow": "1"})
    assert "Followed 1" in text_of(guest, "/incidents")
    text = text_of(guest, "/incidents?view=followed")
    assert "airports" in text
    assert "weather" not in text.split("Followed 1")[1]
