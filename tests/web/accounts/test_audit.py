"""The audit log: for administrators, narrowed by who, what and when, and as CSV."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client

from lakehub.accounts.audit import audit_log
from lakehub.accounts.models import AuditEntry, Role
from tests import factories as make
from tests.query_plans import plans_of

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


@pytest.fixture
def log() -> Client:
    """Three entries, and an administrator who reads them."""
    ines = make.user("ines")
    make.member(ines, make.team(), Role.ADMIN)
    for hours, actor, subject in ((3, "ines", "dataset:flights"), (2, "omar", "team:fleet"), (1, "ines", "token:lh_1")):
        audit_log.record(actor, "change", subject, now=make.NOW - hours * HOUR, tier=1)
    client = Client()
    client.force_login(ines)
    return client


def subjects(client: Client, query: str) -> list[str]:
    return [entry["subject"] for entry in client.get(f"/api/v1/audit{query}").json()["results"]]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["token:lh_1", "team:fleet", "dataset:flights"]),
        ("?actor=ines", ["token:lh_1", "dataset:flights"]),
        ("?subject=team:fleet", ["team:fleet"]),
        ("?subject=dataset:", ["dataset:flights"]),
        ("?since=2026-11-17T17:32:00Z", ["token:lh_1", "team:fleet"]),
        ("?until=2026-11-17T17:32:00Z", ["dataset:flights"]),
        ("?actor=ines&action=change&until=2026-11-17T18:00:00%2B00:00", ["dataset:flights"]),
        ("?action=nothing", []),
    ],
)
def test_it_is_narrowed_newest_first(log: Client, query: str, expected: list[str]) -> None:
    assert subjects(log, query) == expected


def test_a_time_that_cannot_be_read_is_named(log: Client) -> None:
    answer = log.get("/api/v1/audit?since=yesterday")
    assert answer.status_code == 422
    assert "`yesterday`" in answer.json()["error"]["fields"]["since"]


def test_the_csv_has_the_same_lines_and_no_formulas(log: Client) -> None:
    audit_log.record("=cmd|' /C calc'!A0", "change", "dataset:flights", now=make.NOW)
    answer = log.get("/api/v1/audit/export?subject=dataset:flights")
    lines = b"".join(answer.streaming_content).decode().splitlines()  # type: ignore[attr-defined]
    assert lines[0] == "at,actor,action,subject,detail"
    assert lines[1].startswith("2026-11-17T19:32:00Z,'=cmd|")
    assert lines[2] == '2026-11-17T16:32:00Z,ines,change,dataset:flights,"{""tier"": 1}"'
    assert len(lines) == 3


def test_a_list_is_bounded_whatever_is_asked(log: Client) -> None:
    AuditEntry.objects.bulk_create(
        AuditEntry(at=make.NOW, actor="a", action="b", subject="c", detail={}) for _ in range(1100)
    )
    assert len(log.get("/api/v1/audit?limit=100000000000000000000000").json()["results"]) == 1000


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OWNER, Role.ON_CALL])
@pytest.mark.parametrize("address", ["/api/v1/audit", "/api/v1/audit/export", "/audit"])
def test_it_is_for_administrators(client: Client, role: Role, address: str) -> None:
    person = make.user()
    make.member(person, make.team(), role)
    client.force_login(person)
    assert client.get(address).status_code == 403


def test_each_narrowing_has_an_index() -> None:
    for wanted in (
        audit_log.AuditFilter(actor="ines"),
        audit_log.AuditFilter(subject="dataset:"),
        audit_log.AuditFilter(since=make.NOW),
    ):
        (plan,) = plans_of(lambda wanted=wanted: [list(audit_log.find_entries(wanted)[:50])])
        assert "audit_" in plan
        assert "SCAN" not in plan
