"""The audit log: for administrators, of their teams, narrowed by who, what and when, and as CSV."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.conf import settings
from django.test import Client

from ingestion.schemas import registry
from lakehub import clock
from lakehub.accounts.audit import audit_log
from lakehub.accounts.models import AuditEntry, Role
from lakehub.accounts.tokens import api_tokens
from quality.planning import pipeline_hooks
from tests import factories as make
from tests.query_plans import plans_of

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


@pytest.fixture
def log() -> Client:
    """Three entries, and somebody who runs the instance and reads them."""
    ines = make.user("ines", is_superuser=True)
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


@pytest.fixture
def subjects_of_teams() -> dict[str, set[str]]:
    """One of each kind of thing for each of two teams, and a line about each of them."""
    written = {}
    for name, suffix in (("flight-ops", ""), ("weather-data", "2")):
        team, admin = make.team(name), make.user(f"admin{suffix}")
        make.member(admin, team, Role.ADMIN)
        connection = make.connection(f"ops{suffix}", owner=team)
        dataset = make.dataset(f"flights{suffix}", team=team)
        token, _ = api_tokens.issue_token(
            name="t", consumer=f"etl{suffix}", team=team, created_by=admin, scopes=["gate:read"], now=make.NOW
        )
        schema = registry.register(f"flights{suffix}-value", '"string"', team=team, actor="ines", now=make.NOW)
        written[name] = {
            f"team:{name}", f"dataset:{dataset}", f"copy:{make.copy_of(dataset)}", f"connection:{connection.name}", f"consumer:etl{suffix}",
            f"token:{token.prefix}", f"incident:{make.incident(dataset).pk}", f"run:{make.run(make.copy_of(dataset)).pk}",
            f"schema:{schema.subject}",
            f"hook:{pipeline_hooks.create_hook('dbt', team, dataset, created_by=admin, now=make.NOW).key}",
        }  # fmt: skip
    AuditEntry.objects.all().delete()
    everything = {subject for subjects in written.values() for subject in subjects}
    for subject in everything | {"person:ines", "data_center:dc1", "dataset:gone", "incident:many", "units"}:
        audit_log.record("ines", "change", subject, now=make.NOW)
    return written


@pytest.mark.parametrize("team", ["flight-ops", "weather-data"])
def test_an_administrator_reads_the_lines_of_the_own_team_only(
    client: Client, subjects_of_teams: dict[str, set[str]], team: str
) -> None:
    """By the API, as CSV, on the page, and by a token."""
    person = make.user()
    make.member(person, make.team(team), Role.ADMIN)
    make.member(person, make.team("flight-ops" if team == "weather-data" else "weather-data"), Role.OWNER)
    client.force_login(person)
    expected = subjects_of_teams[team]
    assert len(expected) == len(settings.LAKEHUB_AUDIT_SUBJECTS)
    assert set(subjects(client, "")) == expected
    csv = b"".join(client.get("/api/v1/audit/export").streaming_content).decode()  # type: ignore[attr-defined]
    assert {line.split(",")[3] for line in csv.splitlines()[1:]} == expected
    page = client.get("/audit").content.decode()
    assert set(re.findall(r'href="\?subject=[^"]*">([^<]+)<', page)) == expected
    assert "in the teams that you administer" in page
    _, text = api_tokens.issue_token(
        name="a", consumer="audits", team=make.team(team), created_by=person, scopes=["audit:read"], now=clock.now()
    )
    program = Client(headers={"Authorization": f"Bearer {text}"})
    assert set(subjects(program, "?action=change")) == expected


def test_a_token_of_whoever_runs_the_instance_reads_the_lines_of_its_team_only(
    client: Client, subjects_of_teams: dict[str, set[str]]
) -> None:
    boss = make.user(is_superuser=True)
    _, text = api_tokens.issue_token(
        name="a", consumer="audits", team=make.team(), created_by=boss, scopes=["audit:read"], now=clock.now()
    )
    program = Client(headers={"Authorization": f"Bearer {text}"})
    assert set(subjects(program, "?action=change")) == subjects_of_teams["flight-ops"]
    client.force_login(boss)
    assert {"person:ines", "units", *subjects_of_teams["weather-data"]} < set(subjects(client, ""))


def test_a_line_stays_with_the_team_that_the_thing_had(client: Client) -> None:
    dataset = make.dataset("flights")
    audit_log.record("ines", "change", "dataset:flights", now=make.NOW)
    dataset.team = make.team("weather-data")
    dataset.save()
    audit_log.record("ines", "change", "dataset:flights", now=make.NOW)
    for team in ("flight-ops", "weather-data"):
        person = make.user()
        make.member(person, make.team(team), Role.ADMIN)
        client.force_login(person)
        assert subjects(client, "") == ["dataset:flights"]


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
    boss = make.user(is_superuser=True)
    for wanted in (
        audit_log.AuditFilter(actor="ines"),
        audit_log.AuditFilter(subject="dataset:"),
        audit_log.AuditFilter(since=make.NOW),
    ):
        (plan,) = plans_of(lambda wanted=wanted: [list(audit_log.find_entries(wanted, reader=boss)[:50])])
        assert "audit_" in plan
        assert "SCAN" not in plan
