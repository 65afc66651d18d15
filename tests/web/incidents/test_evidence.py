"""An incident keeps what its failing runs saw: after it healed, after results are let go, over the page, the CSV and the API."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from django.test import Client

from incidents.lifecycle.intake import process_flips
from incidents.lifecycle.resolution import resolve_by_force
from incidents.models import Incident, Resolution, SpanEvidence
from incidents.record.evidence import evidence_of, keep_evidence_of_open_incidents
from lakehub.accounts.models import Role, User
from lakehub.kernel.outcome import Outcome
from quality.models import Result, Unit
from tests import factories
from tests.factories import HOUR, NOW
from tests.web.incidents.failing_dataset import BAD_DAY, DAY_BEFORE, FailingDataset

pytestmark = pytest.mark.django_db
DIFFERENT = {"kind": "changed", "key": {"id": "7"}, "columns": {"carrier": ["UA", "hunter2"]}}
LOST = [{"id": 7, "carrier": "UA"}, {"id": 9, "carrier": None}]
SEEN = {"facts": {"rows(this)": "975", "rows(dc1)": "985"}, "missing": LOST}


@pytest.fixture
def healed() -> Incident:
    """It failed twice, the second time with other records, then passed."""
    stage = FailingDataset()
    incident = stage.opened()
    unit = incident.spans.get().unit
    stage.fails(at=NOW + HOUR)
    Result.objects.filter(read_at=NOW).update(detail={"missing": [{"id": 1}]})
    Result.objects.filter(read_at=NOW + HOUR).update(detail=SEEN, observed=0.98, threshold="> 99.9%")
    stage.passes(unit, at=NOW + 2 * HOUR)
    process_flips(now=NOW + 2 * HOUR)
    incident.refresh_from_db()
    assert incident.resolved_at is not None
    return incident


def reader() -> Client:
    client = Client()
    person = factories.user("reader")
    factories.member(person, factories.team(), Role.VIEWER)
    client.force_login(person)
    return client


def table(client: Client, incident: Incident) -> list[list[str]]:
    answer: Any = client.get(f"/incidents/{incident.pk}/missing.csv")
    assert answer.status_code == 200
    return list(csv.reader(io.StringIO(b"".join(answer.streaming_content).decode())))


def test_it_is_the_last_failing_run_and_outlives_its_results(healed: Incident) -> None:
    Result.objects.all().delete()
    (row,) = evidence_of(healed)
    assert (row.observed, row.threshold, row.detail, row.read_at) == (0.98, "> 99.9%", SEEN, NOW + HOUR)


def test_the_page_shows_it_after_it_healed(healed: Incident) -> None:
    Result.objects.all().delete()
    html = reader().get(f"/incidents/{healed.pk}").content.decode()
    assert "What the failing run saw" in html
    assert "<code>rows(dc1)</code>" in html.replace(' class="break"', "")
    assert "2 missing records as CSV" in html


def test_the_csv_names_each_record_with_its_range(healed: Incident) -> None:
    assert table(reader(), healed) == [
        ["data_range", "data_center", "test", "read_at", "id", "carrier"],
        ["Mon 16 Nov", "dc2", "Rows as in dc1", "2026-11-17T20:32:00Z", "7", "UA"],
        ["Mon 16 Nov", "dc2", "Rows as in dc1", "2026-11-17T20:32:00Z", "9", ""],
    ]


@pytest.mark.parametrize("formula", ["=cmd|' /C calc'!A0", "+1+1", "-2", "@SUM(A1)", "\t=1", "\r=1", "\n=1"])
def test_what_a_spreadsheet_would_run_is_text(healed: Incident, formula: str) -> None:
    SpanEvidence.objects.update(detail={"missing": [{formula: formula}]})
    lines = table(reader(), healed)
    assert lines[0][-1] == lines[1][-1] == f"'{formula}"


@pytest.mark.parametrize("detail", [{}, [], {"missing": None}, {"missing": ["7", None]}, {"missing": {"id": 7}}])
def test_what_is_not_a_list_of_records_is_none(healed: Incident, detail: Any) -> None:
    SpanEvidence.objects.update(detail=detail)
    assert len(table(reader(), healed)) == 1
    assert reader_page(healed) == 200


def reader_page(incident: Incident) -> int:
    client = Client()
    client.force_login(factories.user())
    return client.get(f"/incidents/{incident.pk}").status_code


def test_tests_that_name_records_by_other_columns_share_a_table() -> None:
    stage = FailingDataset()
    incident = stage.opened()
    stage.fails(DAY_BEFORE, at=NOW)
    process_flips(now=NOW)
    for over, detail in ((BAD_DAY, {"missing": [{"id": 1}]}), (DAY_BEFORE, {"missing": [{"code": "x"}]})):
        Unit.objects.filter(start=over.start).update(detail=detail)
    header, *rows = table(reader(), incident)
    assert sorted(header[4:]) == ["code", "id"]
    assert sorted("".join(row[4:]) for row in rows) == ["1", "x"]


def test_of_what_still_fails_it_is_the_newest_run() -> None:
    stage = FailingDataset()
    incident = stage.opened()
    stage.fails(at=NOW + HOUR)
    Result.objects.filter(read_at=NOW + HOUR).update(detail=SEEN)
    stage.see(incident.spans.get().unit, Outcome.ERROR, at=NOW + 2 * HOUR)
    assert [row.detail for row in evidence_of(incident)] == [SEEN]


def test_what_cannot_be_read_for_weeks_leaves_its_last_failing_run() -> None:
    incident = FailingDataset().opened()
    Result.objects.update(detail=SEEN)
    assert keep_evidence_of_open_incidents() == 1
    Unit.objects.update(latest_outcome=Outcome.ERROR, detail={"error": "gone"})
    Result.objects.all().delete()
    assert [row.detail for row in evidence_of(incident)] == [SEEN]


def test_what_is_resolved_by_force_keeps_it_too() -> None:
    incident = FailingDataset().opened()
    Result.objects.update(detail=SEEN)
    resolve_by_force(
        incident.pk,
        resolution=Resolution.ACCEPTED,
        false_positive="",
        why="Known",
        actor="ana",
        now=NOW + HOUR,
    )
    Result.objects.all().delete()
    assert [row.missing for row in evidence_of(incident)] == [LOST]


def test_it_is_for_people_who_are_signed_in(healed: Incident) -> None:
    answer = Client().get(f"/incidents/{healed.pk}/missing.csv")
    assert answer.headers["Location"].startswith("/sign-in?next=")
    assert reader().get("/incidents/4711/missing.csv").status_code == 404


def test_who_may_not_see_rows_sees_how_many_are_missing_and_not_which(healed: Incident) -> None:
    """On the page, as CSV and over the API, of the incident, of the unit and of each of its results."""
    SpanEvidence.objects.update(detail=SEEN | {"differences": [DIFFERENT]})
    unit = healed.spans.get().unit
    Unit.objects.filter(pk=unit.pk).update(detail=SEEN | {"differences": [DIFFERENT]})
    Result.objects.update(detail=SEEN | {"differences": [DIFFERENT]})
    guest = Client()
    guest.force_login(factories.user("guest"))
    assert guest.get(f"/incidents/{healed.pk}/missing.csv").status_code == 403
    pages = (
        f"/incidents/{healed.pk}",
        f"/datasets/flights/tests/{unit.test.key}",
        "/datasets/flights",
        f"/api/v1/incidents/{healed.pk}/evidence",
        "/api/v1/datasets/flights/units",
        f"/api/v1/units/{unit.pk}/results",
    )
    for page in pages:
        shown, hidden = reader_of(page), guest.get(page).content.decode()
        assert ("hunter2" in shown) is (page != "/datasets/flights"), page
        assert "rows(dc1)" in hidden or page == "/datasets/flights", page
        assert "hunter2" not in hidden, page
        assert "carrier" not in hidden, page


def reader_of(page: str) -> str:
    client = Client()
    client.force_login(User.objects.filter(username="reader").first() or _reader())
    answer = client.get(page)
    assert answer.status_code == 200, page
    return answer.content.decode()


def _reader() -> User:
    person = factories.user("reader")
    factories.member(person, factories.team(), Role.VIEWER)
    return person


def test_records_of_another_dataset_are_its_teams_too(healed: Incident) -> None:
    """A test may compare with a dataset of others: who writes it does not read their rows by it."""
    payroll = factories.dataset("payroll", team=factories.team("people"))
    SpanEvidence.objects.update(detail=SEEN | {"compared_with": ["payroll"]})
    address, client = f"/api/v1/incidents/{healed.pk}/evidence", reader()
    assert client.get(address).json()[0]["missing"] == []
    assert len(table(client, healed)) == 1
    factories.member(User.objects.get(username="reader"), payroll.team, Role.VIEWER)
    assert client.get(address).json()[0]["missing"] == LOST
    SpanEvidence.objects.update(detail=SEEN | {"compared_with": ["payroll", "gone"]})
    assert client.get(address).json()[0]["missing"] == [], "nobody knows whose they are"


def test_the_api_has_it(healed: Incident) -> None:
    (row,) = reader().get(f"/api/v1/incidents/{healed.pk}/evidence").json()
    assert (row["missing"], row["observed"], row["data_center"]) == (LOST, 0.98, "dc2")
