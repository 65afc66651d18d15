"""Who may do what, address by address: the table that tests/web/test_roles.py walks. The first line that fits counts.

A new address that is read needs no line: its prefix has a default. One that changes something needs one; the test names it.
"""

from __future__ import annotations

from datetime import timedelta

from lakehub import clock
from tests.role_table_lines import (
    ACTORS,
    ADMINS,
    ADMINS_OF_ANY_TEAM,
    ANY_SCOPE,
    ANYBODY,
    IN_THE_TEAM,
    NOBODY,
    NOTHING,
    OWNERS,
    OWNERS_OF_ANY_TEAM,
    READERS,
    REFUSED,
    STAFF,
    SUPERUSERS,
    Line,
)

TOMORROW = (clock.now() + timedelta(days=1)).isoformat()
GATE = "dataset=flights&from=2026-11-14&to=2026-11-17&dc=dc1"
RANGE = "from=2026-11-14T00:00:00Z&to=2026-11-17T00:00:00Z"
REPORT = {"dataset": "flights", "from": "2026-11-10", "to": "2026-11-11", "category": "others", "text": "Odd numbers"}
NEW_TEST = {"key": "some-rows", "title": "Some rows", "category": "others", "expression": "rows(this) > 0"}
METRIC = {"name": "delays", "dataset": "flights", "sql": "SELECT count(*) FROM this", "low": 1}
ROUTE = {"channel": "email", "address": "ops@example.org", "zone": "UTC", "least": "low", "digest": "none"}
TRIAL = {"channel": "email", "address": "ops@example.org"}
TOKEN = {"name": "t", "team": "flight-ops", "consumer": "etl", "scopes": ["gate:read"], "days": 9}
APPLICATION = {"name": "x", "team": "flight-ops", "tier": 3, "connection": "ops", "table": "x", "data_centers": ["dc1"]}
POLICY = {"consumer": "etl", "tier": 1, "preset": "lenient"}
OVERRIDE = {
    "dataset": "flights",
    "from": "2026-11-14",
    "to": "2026-11-15",
    "dc": "dc1",
    "reason": "Known to be harmless",
    "until": TOMORROW,
}
WORDS = {"subject": "{dataset} fails", "body": "{link}"}
AS_MADE = f"{NOTHING}: it is as made"
NOT_FOLLOWED = f"{NOTHING}: they do not follow it"
ALONE = f"{NOTHING}: it answers, and changes nothing"
OWN = f"{NOTHING}: of the browser or the person only"

TABLE = (
    # -- open to whoever reaches it
    Line("GET", "health", ANYBODY),
    Line("GET", "ready", ANYBODY),
    Line("GET", "metrics", ANYBODY),
    Line("GET", "sign-in", ANYBODY, answers=(200, 302)),
    Line("POST", "sign-in", ANYBODY, leaves=OWN),
    Line("POST", "theme", ANYBODY, leaves=OWN),
    Line("GET POST", "console/login/", ANYBODY, leaves=OWN),
    # -- tokens, audit: administrators
    Line("GET", "api/v1/tokens", ADMINS_OF_ANY_TEAM, "tokens:read"),
    Line("POST", "api/v1/tokens", ADMINS, "tokens:write", TOKEN, "audit", team_in_body=True),
    Line("DELETE", "api/v1/tokens/<str:prefix>", ADMINS, "tokens:write", leaves="audit"),
    Line("GET", "api/v1/audit*", ADMINS_OF_ANY_TEAM, "audit:read"),
    Line("GET", "tokens", ADMINS_OF_ANY_TEAM),
    Line("POST", "tokens", ADMINS, body=TOKEN, leaves="audit", team_in_body=True),
    Line("POST", "tokens/<str:prefix>/revoke", ADMINS, leaves="audit"),
    Line("GET", "audit", ADMINS_OF_ANY_TEAM),
    # -- catalog
    Line("POST", "api/v1/data-centers", SUPERUSERS, "", {"name": "dc9", "lake_uri": "file:///lake/dc9"}, "audit"),
    Line(
        "POST",
        "api/v1/connections",
        ADMINS,
        "catalog:write",
        {"name": "m", "plugin": "sql", "url": "sqlite:///:memory:", "team": "flight-ops"},
        "audit",
        team_in_body=True,
        answers=(201, 422),
    ),
    Line("POST", "api/v1/datasets", OWNERS, "catalog:write", APPLICATION, "audit", answers=REFUSED, team_in_body=True),
    Line("POST", "api/v1/datasets/bulk", OWNERS_OF_ANY_TEAM, "catalog:write", {"datasets": [APPLICATION]}, ALONE),
    Line("PATCH", "api/v1/datasets/<str:name>", OWNERS, "catalog:write", {"tier": 2}, "audit"),
    Line("DELETE", "api/v1/datasets/<str:name>", ADMINS, "catalog:write", leaves="audit"),
    Line("POST", "api/v1/datasets/<str:name>/restore", OWNERS, "catalog:write", {}, "audit", answers=(409, 422)),
    # -- ingestion
    Line(
        "POST",
        "api/v1/datasets/<str:name>/runs",
        ACTORS,
        "ingestion:run",
        {"kind": "incremental", "data_center": "dc1", "params": {}},
        "audit",
        answers=(201, 422),
    ),
    Line("GET", "api/v1/datasets/<str:name>/runs", READERS, "ingestion:read"),
    Line("GET", "api/v1/datasets/<str:name>/commits", READERS, "ingestion:read"),
    Line(
        "POST",
        "api/v1/datasets/<str:name>/runs/<int:number>/start",
        ACTORS,
        "ingestion:run",
        {"why": "Known"},
        "audit",
        answers=(409, 422),
    ),
    Line("POST", "api/v1/datasets/<str:name>/runs/<int:number>/cancel", ACTORS, "ingestion:run", {}, "audit"),
    # -- quality
    Line("POST", "api/v1/datasets/<str:name>/tests", OWNERS, "catalog:write", NEW_TEST, "audit"),
    Line("DELETE", "api/v1/datasets/<str:name>/tests/<str:key>", OWNERS, "catalog:write", leaves="audit"),
    Line("POST", "api/v1/datasets/<str:name>/run", ACTORS, "quality:run", {}, "audit"),
    Line(
        "POST", "api/v1/datasets/<str:name>/rules", OWNERS, "catalog:write", {"kind": "nulls", "column": "id"}, "audit"
    ),
    Line("DELETE", "api/v1/datasets/<str:name>/rules/<int:number>", OWNERS, "catalog:write", leaves="audit"),
    Line(
        "GET", "api/v1/datasets/<str:name>/rules/proposals", ACTORS, "quality:run", answers=(200, *REFUSED), slow=True
    ),
    Line(
        "POST",
        "api/v1/datasets/<str:name>/backtest",
        ACTORS,
        "quality:run",
        {"expression": "rows(this) > 0", "days": 1},
        ALONE,
        slow=True,
        answers=(200, 422),
    ),
    Line(
        "POST",
        "api/v1/datasets/<str:name>/expression",
        READERS,
        "quality:read",
        {"expression": "rows(this) > 0"},
        ALONE,
    ),
    Line("POST", "api/v1/metrics", OWNERS, "catalog:write", METRIC, "audit", team_in_body=True, slow=True),
    Line("DELETE", "api/v1/metrics/<str:name>", OWNERS, "catalog:write", leaves="audit"),
    Line("GET", "api/v1/reports/weekly", READERS, "quality:read", asks="team=flight-ops"),
    # -- pipelines of others
    Line(
        "POST",
        "api/v1/pipelines/finished",
        ACTORS,
        "quality:run",
        {"dataset": "flights", "dc": "dc1", "run_id": "r1", "from": "2026-11-16", "to": "2026-11-17"},
        "audit",
        team_in_body=True,
    ),
    Line("GET", "api/v1/pipelines/hooks", READERS, "catalog:read"),
    Line(
        "POST",
        "api/v1/pipelines/hooks",
        OWNERS,
        "catalog:write",
        {"name": "dbt", "team": "flight-ops"},
        "audit",
        team_in_body=True,
    ),
    Line("DELETE", "api/v1/pipelines/hooks/<str:key>", OWNERS, "catalog:write", leaves="audit"),
    Line("POST", "api/v1/pipelines/hooks/<str:key>/finished", NOBODY, leaves=f"{NOTHING}: only a signature opens it"),
    # -- alerts
    Line("GET", "api/v1/alerts/coverage", READERS, "incidents:read"),
    Line("GET", "api/v1/datasets/<str:name>/alerts", READERS, "incidents:read"),
    Line("GET", "api/v1/datasets/<str:name>/suppression", READERS, "incidents:read"),
    Line("GET", "api/v1/datasets/<str:name>/upstream-incidents", READERS, "incidents:read"),
    Line(
        "PUT", "api/v1/datasets/<str:name>/alerts/<str:category>", OWNERS, "catalog:write", {"severity": "low"}, "audit"
    ),
    Line("DELETE", "api/v1/datasets/<str:name>/alerts/<str:category>", OWNERS, "catalog:write", leaves="audit"),
    Line(
        "POST",
        "api/v1/datasets/<str:name>/suppression",
        OWNERS,
        "catalog:write",
        {"by": "completeness", "suppresses": "others"},
        "audit",
    ),
    Line("DELETE", "api/v1/datasets/<str:name>/suppression", OWNERS, "catalog:write", leaves="audit"),
    Line("GET", "api/v1/teams/<str:name>/routes*", READERS, "incidents:read"),
    Line("POST", "api/v1/teams/<str:name>/routes", OWNERS, "catalog:write", ROUTE, "audit"),
    Line("PATCH", "api/v1/teams/<str:name>/routes/<int:number>", OWNERS, "catalog:write", {"least": "high"}, "audit"),
    Line("DELETE", "api/v1/teams/<str:name>/routes/<int:number>", OWNERS, "catalog:write", leaves="audit"),
    # -- incidents
    Line("POST", "api/v1/incidents", READERS, "incidents:write", REPORT, "event"),
    Line(
        "POST",
        "api/v1/incidents/bulk",
        READERS,
        "incidents:write",
        {"incidents": ["{incidents/<int:number>}"], "action": "acknowledge"},
        "event",
        acts=ACTORS,
    ),
    Line(
        "POST",
        "api/v1/incidents/bulk/<int:number>/undo",
        READERS,
        "incidents:write",
        leaves="event",
        acts=IN_THE_TEAM,
        answers=(200, 404),
    ),
    Line("POST", "api/v1/incidents/<int:number>/backfill", ACTORS, "incidents:write", {"data_center": "dc1"}, "event"),
    Line("POST", "api/v1/incidents/<int:number>/acknowledge", ACTORS, "incidents:write", {}, "event"),
    Line("POST", "api/v1/incidents/<int:number>/release", ACTORS, "incidents:write", {}, "event", answers=(409,)),
    Line("POST", "api/v1/incidents/<int:number>/annotate", ACTORS, "incidents:write", {"backfill": "needed"}, "event"),
    Line("POST", "api/v1/incidents/<int:number>/comment", ACTORS, "incidents:write", {"text": "Seen"}, "event"),
    Line("POST", "api/v1/incidents/<int:number>/assign", ACTORS, "incidents:write", {"assignee": "on_call"}, "event"),
    Line(
        "POST",
        "api/v1/incidents/<int:number>/snooze",
        ACTORS,
        "incidents:write",
        {"until": "2126-11-18T00:00:00Z"},
        "event",
        answers=(200, 422),
    ),
    Line("POST", "api/v1/incidents/<int:number>/wake", ACTORS, "incidents:write", {}, "event", answers=(409,)),
    Line("POST", "api/v1/incidents/<int:number>/rerun", ACTORS, "incidents:write", {}, "event"),
    Line(
        "POST",
        "api/v1/incidents/<int:number>/resolve",
        ACTORS,
        "incidents:write",
        {"resolution": "accepted", "why": "Old"},
        "event",
    ),
    Line("POST", "api/v1/incidents/<int:number>/reopen", ACTORS, "incidents:write", {}, "event", answers=(409, 422)),
    Line("POST", "api/v1/incidents/<int:number>/reject", ACTORS, "incidents:write", {}, "event", answers=(409, 422)),
    Line("POST", "api/v1/incidents/<int:number>/dispute", READERS, "incidents:write", {}, "event", answers=(409, 422)),
    Line(
        "POST", "api/v1/incidents/<int:number>/merge", ACTORS, "incidents:write", {"other": 99}, "event", answers=(404,)
    ),
    Line(
        "POST",
        "api/v1/incidents/<int:number>/split",
        ACTORS,
        "incidents:write",
        {"units": ["{units/<int:number>}"]},
        "event",
        answers=(422,),
    ),
    # -- the gate
    Line("GET", "api/v1/gate", READERS, "gate:read", asks=GATE),
    Line(
        "POST",
        "api/v1/gate",
        READERS,
        "gate:read",
        {"inputs": [{"dataset": "flights", "from": "2026-11-14", "to": "2026-11-17", "dc": "dc1"}]},
        ALONE,
    ),
    Line(
        "POST",
        "api/v1/gate/query",
        READERS,
        "gate:read",
        {"sql": "SELECT * FROM flights WHERE flight_date = '2026-11-16'", "dc": "dc1"},
        ALONE,
    ),
    Line("GET", "api/v1/gate/metrics/*", READERS, "gate:read", asks=RANGE + "&dc=dc1"),
    Line("GET", "api/v1/gate/*", READERS, "gate:read"),
    Line("PUT", "api/v1/gate/policies", ADMINS, "gate:write", POLICY, "audit", team_in_body=True),
    Line(
        "DELETE",
        "api/v1/gate/policies",
        ADMINS,
        "gate:write",
        leaves="audit",
        asks="consumer=etl&tier=1",
        answers=(204, 404),
    ),
    Line("POST", "api/v1/gate/overrides", ACTORS, "gate:write", OVERRIDE, "audit", team_in_body=True),
    Line("POST", "api/v1/gate/overrides/<int:number>/end", ACTORS, "gate:write", {}, "audit"),
    # -- who is told
    Line("PUT", "api/v1/datasets/<str:name>/subscription", READERS, "incidents:write", leaves="audit"),
    Line("DELETE", "api/v1/datasets/<str:name>/subscription", READERS, "incidents:write", leaves=NOT_FOLLOWED),
    Line("POST", "api/v1/teams/<str:name>/routes/<int:number>/test", OWNERS, "catalog:write", leaves="audit"),
    Line("POST", "api/v1/teams/<str:name>/channels/test", OWNERS, "catalog:write", TRIAL, "audit"),
    Line("PUT", "api/v1/teams/<str:name>/messages/<str:occasion>", OWNERS, "catalog:write", WORDS, "audit"),
    Line(
        "DELETE",
        "api/v1/teams/<str:name>/messages/<str:occasion>",
        OWNERS,
        "catalog:write",
        leaves=AS_MADE,
        answers=(404,),
    ),
    Line("POST", "api/v1/teams/<str:name>/messages/*/preview", READERS, "incidents:read", WORDS, ALONE),
    # -- what is read over the API: a scope by what it is about
    Line("GET", "api/v1/schema", READERS, ANY_SCOPE),
    Line("GET", "api/v1/scores", READERS, "incidents:read", asks=RANGE),
    Line("GET", "api/v1/incidents*", READERS, "incidents:read"),
    Line("GET", "api/v1/scores/*", READERS, "incidents:read", asks=RANGE),
    Line("GET", "api/v1/status", READERS, "incidents:read"),
    Line("GET", "api/v1/teams/*", READERS, "incidents:read"),
    Line("GET", "api/v1/subscriptions", READERS, "incidents:read"),
    Line("GET", "api/v1/message-variables", READERS, "incidents:read"),
    Line("GET", "api/v1/connections", READERS, "catalog:read"),
    Line("GET", "api/v1/data-centers", READERS, "catalog:read"),
    Line("GET", "api/v1/lineage/*", READERS, "catalog:read"),
    Line("GET", "api/v1/datasets", READERS, "catalog:read"),
    Line("GET", "api/v1/datasets/<str:name>", READERS, "catalog:read"),
    Line("GET", "api/v1/*", READERS, "quality:read"),
    # -- forms of pages
    Line("POST", "datasets/<str:name>/runs/<int:number>/start", ACTORS, leaves=f"{NOTHING}: it does not wait"),
    Line("POST", "datasets/<str:name>/runs/<int:number>/cancel", ACTORS, leaves="audit"),
    Line("POST", "datasets/<str:name>/hooks", OWNERS, body={"name": "dbt"}, leaves="audit"),
    Line("POST", "datasets/<str:name>/hooks/<str:key>/revoke", OWNERS, leaves="audit"),
    Line("POST", "datasets/<str:name>/follow", READERS, body={"follow": "1"}, leaves="audit"),
    Line("POST", "teams/<str:name>/routes/<int:number>/test", OWNERS, leaves="audit"),
    Line("POST", "teams/<str:name>/try", OWNERS, body=ROUTE, leaves="audit"),
    Line("POST", "teams/<str:name>/messages/<str:occasion>", OWNERS, body=WORDS, leaves="audit"),
    Line("POST", "incidents/together/<int:number>/undo", READERS, leaves="event", acts=IN_THE_TEAM),
    Line("POST", "incidents/<int:pk>/release", ACTORS, leaves=f"{NOTHING}: nobody has it"),
    Line("POST", "incidents/<int:pk>/merge", ACTORS, body={"other": "99"}, leaves=f"{NOTHING}: there is no such"),
    Line("POST", "incidents/<int:pk>/split", ACTORS, body={"unit": "1"}, leaves=f"{NOTHING}: it has one only"),
    Line("POST", "incidents/<int:pk>/assign", ACTORS, body={"assignee": "on_call"}, leaves="event"),
    Line("POST", "incidents/<int:pk>/backfill", ACTORS, body={"data_center": "dc1"}, leaves="event"),
    Line("POST", "sign-out", READERS, leaves=OWN),
    Line("POST", "gate/query", READERS, body={"sql": "SELECT * FROM flights", "dc": "dc1"}, leaves=ALONE),
    Line("POST", "gate/override", ACTORS, body={**OVERRIDE, "until": TOMORROW[:16]}, leaves="audit", team_in_body=True),
    Line("POST", "gate/overrides/<int:number>/end", ACTORS, leaves="audit"),
    Line("POST", "datasets/<str:name>/rerun", ACTORS, leaves="audit"),
    Line("POST", "datasets/<str:name>/settings", OWNERS, leaves="audit", body={"tier": "2"}, answers=(302, 422)),
    Line("POST", "datasets/<str:name>/offboard", ADMINS, leaves="audit"),
    Line("POST", "datasets/<str:name>/restore", OWNERS, leaves=f"{NOTHING}: it is live"),
    Line("POST", "datasets/<str:name>/rules", OWNERS, body={"kind": "nulls", "column": "id"}, leaves="audit"),
    Line(
        "POST",
        "datasets/<str:name>/rules/take",
        OWNERS,
        body={"rule": '{"kind": "nulls", "column": "id", "parameters": {}}'},
        leaves="audit",
    ),
    Line("POST", "datasets/<str:name>/rules/<int:number>/remove", OWNERS, leaves="audit"),
    Line("POST", "datasets/<str:name>/alerts/<str:category>", OWNERS, body={"severity": "low"}, leaves="audit"),
    Line(
        "POST",
        "datasets/<str:name>/suppress",
        OWNERS,
        body={"by": "completeness", "suppresses": "others", "counts": "1"},
        leaves="audit",
    ),
    Line("POST", "datasets/<str:name>/suppress/reset", OWNERS, leaves="audit"),
    Line("POST", "teams/<str:name>/routes", OWNERS, body=ROUTE, leaves="audit"),
    Line("POST", "teams/<str:name>/routes/<int:number>", OWNERS, body=ROUTE, leaves="audit"),
    Line("POST", "teams/<str:name>/routes/<int:number>/remove", OWNERS, leaves="audit"),
    Line("GET POST", "datasets/<str:name>/new-test", OWNERS, body=NEW_TEST, leaves="audit"),
    Line("POST", "datasets/<str:name>/expression", READERS, body={"expression": "rows(this) > 0"}, leaves=ALONE),
    Line("POST", "datasets/<str:name>/tests/<str:key>/run", ACTORS, leaves="audit"),
    Line(
        "GET POST", "datasets/<str:name>/tests/<str:key>/edit", OWNERS, body={**NEW_TEST, "key": "keys"}, leaves="audit"
    ),
    Line("POST", "datasets/<str:name>/tests/<str:key>/retire", OWNERS, leaves="audit"),
    Line("POST", "incidents/report", READERS, body=REPORT, leaves="event"),
    Line("POST", "incidents/<int:pk>/answer", ACTORS, body={"answer": "reject"}, leaves=f"{NOTHING}: it is no report"),
    Line(
        "POST",
        "incidents/together",
        READERS,
        body={"incident": ["{incidents/<int:pk>}"], "action": "acknowledge"},
        leaves="event",
        acts=ACTORS,
    ),
    Line("POST", "incidents/<int:pk>/annotate", ACTORS, body={"backfill": "needed"}, leaves="event"),
    Line("POST", "incidents/<int:pk>/comment", ACTORS, body={"text": "Seen"}, leaves="event"),
    Line("POST", "incidents/<int:pk>/snooze", ACTORS, body={"until": "2126-11-18T00:00"}, leaves="event"),
    Line("POST", "gate/policies", ADMINS, body=POLICY, leaves="audit", team_in_body=True),
    Line("POST", "gate/policies/remove", ADMINS, body={"consumer": "etl"}, leaves=f"{NOTHING}: there is none"),
    Line("POST", "incidents/<int:pk>/wake", ACTORS, leaves=f"{NOTHING}: it is not snoozed"),
    Line("POST", "incidents/<int:pk>/resolve", ACTORS, body={"how": "accepted", "why": "Old"}, leaves="event"),
    Line("POST", "incidents/<int:pk>/reopen", ACTORS, leaves=f"{NOTHING}: it is open"),
    Line("POST", "incidents/<int:pk>/*", ACTORS, leaves="event"),
    Line("POST", "new-metric", OWNERS, body=METRIC, leaves="audit", team_in_body=True, slow=True),
    Line("GET POST", "business-metrics/<str:name>/edit", OWNERS, body=METRIC, leaves="audit", slow=True),
    Line("POST", "business-metrics/<str:name>/remove", OWNERS, leaves="audit"),
    Line("POST", "onboarding", OWNERS, body={"team": "flight-ops"}, leaves="audit", answers=(422,), team_in_body=True),
    # -- what is read on pages, and the console
    Line("GET", "console/*", STAFF),
    Line("GET", "*", READERS),
)


def line_for(method: str, address: str) -> Line | None:
    return next((line for line in TABLE if line.fits(method, address)), None)
