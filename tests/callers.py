"""One of each thing that has an address, and one of each kind of caller: for tests that go everywhere as everybody."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import Permission
from django.test import Client

from incidents.gate import overrides
from incidents.lifecycle.bulk import apply
from incidents.models import BulkAction, Incident, IncidentState, Route, SuppressionRule, UserReport
from ingestion.lake import readers
from ingestion.models import JobState
from ingestion.schemas import registry
from lakehub import clock
from lakehub.accounts.models import Role, Team, Token, User
from lakehub.accounts.tokens import api_tokens
from lakehub.catalog.models import Dataset, LineageDay
from lakehub.kernel.outcome import Outcome, Verdict
from quality.models import Category, ColumnRule, Metric, QualityTest, Unit
from quality.planning import pipeline_hooks
from tests import factories as make

TEAM, OTHER_TEAM = "flight-ops", "weather-data"
MEMBERS = ("viewer", "owner", "on_call", "admin")
PEOPLE = (*MEMBERS, "stranger", "superuser", "staff")
"""Members of the team by role; an admin of another team; a superuser; somebody of the console without any permission there."""
PROGRAMS = ("token", "viewer's token", "token without the scope", "expired token", "revoked token")
"""Of the team's admin with every scope; of a viewer with every scope; then what must open nothing."""
CALLERS = ("anonymous", *PEOPLE, *PROGRAMS)

_CSRF = "t" * 32
_MONITORED_FROM = make.NOW - 2 * make.DAY
"""A short history: each rule that a caller adds plans units for all of it."""


@dataclass(frozen=True)
class Caller:
    """`headers` and `cookies` are all that tells who asks."""

    name: str
    headers: dict[str, str]
    cookies: dict[str, str] = field(default_factory=dict)

    @property
    def client(self) -> Client:
        client = Client(headers=self.headers, raise_request_exception=False)
        client.cookies.load(self.cookies)
        return client


@dataclass(frozen=True)
class World:
    callers: dict[str, Caller]
    places: dict[str, str]
    """What stands for a variable of an address: `datasets/<str:name>` is a dataset that is there."""


def build() -> World:
    """Everything below hangs off the dataset `flights` of the team; call it within a test's transaction."""
    team, other = make.team(TEAM), make.team(OTHER_TEAM)
    people = {name: make.user(name) for name in PEOPLE}
    for name in MEMBERS:
        make.member(people[name], team, Role(name))
    make.member(people["stranger"], other, Role.ADMIN)
    User.objects.filter(username__in=("superuser", "staff")).update(is_staff=True)
    User.objects.filter(username="superuser").update(is_superuser=True)
    return World(_callers(people, team), _things(team, people["admin"]))


def grant(username: str, *permissions: str) -> None:
    """Permissions of the console."""
    User.objects.get(username=username).user_permissions.set(Permission.objects.filter(codename__in=permissions))


def _callers(people: dict[str, User], team: Team) -> dict[str, Caller]:
    callers = {"anonymous": Caller("anonymous", {})}
    for name, person in people.items():
        client = Client()
        client.force_login(person)
        cookies = {"sessionid": client.cookies["sessionid"].value, "csrftoken": _CSRF}
        callers[name] = Caller(name, {"X-CSRFToken": _CSRF}, cookies)
    given: dict[str, dict[str, Any]] = {
        "token": {},
        "viewer's token": {"created_by": people["viewer"]},
        "token without the scope": {"scopes": []},
        "expired token": {},
        "revoked token": {},
    }
    for name, fields in given.items():
        callers[name] = _program(name, **{"created_by": people["admin"], "team": team, **fields})
    then = clock.now() - timedelta(days=1)
    Token.objects.filter(name="expired token").update(expires_at=then)
    Token.objects.filter(name="revoked token").update(revoked_at=then)
    return callers


def _program(name: str, **fields: Any) -> Caller:
    fields = {"scopes": api_tokens.SCOPES, "consumer": "etl", "data_center": "", **fields}
    _, text = api_tokens.issue_token(name=name, now=clock.now(), **fields)
    return Caller(name, {"Authorization": f"Bearer {text}"})


def _incident(flights: Dataset, unit: Unit, reporter: User) -> Incident:
    """One that was talked about and told; and a user's report that waits for an answer."""
    incident = make.incident(flights, Category.DUPLICATES, unit)
    make.event(incident, "commented", actor="omar", text="Looks like a rerun.")
    make.message(incident)
    report = make.incident(flights, Category.OTHERS, state=IncidentState.WAITING, reported=True)
    UserReport.objects.create(
        incident=report, reporter=reporter, start=unit.start, end=unit.end, text="Odd", occurred_at=make.NOW - make.HOUR
    )
    return incident


def _things(team: Team, admin: User) -> dict[str, str]:
    """A dataset with all that belongs to it, in a state in which most of what can be done to it can be done."""
    flights = make.dataset("flights", team=team, tier=1, copies=(), onboarded_at=_MONITORED_FROM)
    for center in ("dc1", "dc2"):
        make.copy(flights, center, monitored_from=_MONITORED_FROM)
    make.feed(flights, connection=make.connection(owner=team))
    make.edge(make.dataset("airlines", team=team, by_day=False), flights)
    make.dataset("gone", team=team, offboarded_at=make.NOW)
    test = make.quality_test(flights, key="keys")
    QualityTest.objects.filter(pk=test.pk).update(generated=False)
    unit = make.unit(test, over=make.day("2026-11-16"), verdict=Verdict.FAIL)
    make.result(unit, Outcome.FAIL, observed=0.98, threshold="> 99.9%")
    make.run(unit.copy)
    readers.note_position(unit.copy, "warehouse_load", "20261116080000000", actor="admin", now=clock.now())
    make.commit(unit.copy, touched=(make.day("2026-11-16"),))
    LineageDay.objects.create(day=make.NOW.date(), due_at=make.NOW, source="file")
    incident = _incident(flights, unit, admin)
    rule = ColumnRule.objects.create(
        dataset=flights, kind="range", column="id", parameters={"low": 0}, set_by="admin", set_at=make.NOW
    )
    route = Route.objects.create(team=team, channel="email", address="night@example.org", digest="daily")
    SuppressionRule.objects.create(
        dataset=flights, by_category="completeness", suppresses="duplicates", set_by="admin", set_at=make.NOW
    )
    metric = Metric.objects.create(
        name="on_time", dataset=flights, team=team, sql="SELECT avg(id) FROM this", set_by="admin", set_at=make.NOW
    )
    queued = make.run(make.copy_of(flights, "dc2"), state=JobState.QUEUED, started_at=None, ended_at=None)
    backfill = make.backfill(make.copy_of(flights, "dc2"))
    hook = pipeline_hooks.create_hook("dbt", team, flights, created_by=admin, now=clock.now())
    in_a_day = clock.now() + make.DAY
    data = make.day("2026-11-15")
    free = overrides.create_override(flights, data, reason="Known", expires_at=in_a_day, actor=admin, now=clock.now())
    other = make.incident(flights, Category.FRESHNESS)
    done = apply.apply_to_many([other.pk], apply.BulkRequest("acknowledge"), actor=admin, now=clock.now()).bulk
    assert done is not None
    BulkAction.objects.update(at=clock.now() + make.HOUR)  # it can be undone for minutes, and the walk may take longer
    token, _ = api_tokens.issue_token(
        name="to be revoked", consumer="etl", team=team, created_by=admin, scopes=["gate:read"], now=clock.now()
    )
    schema = registry.register(
        "flights-value", '{"type": "record", "name": "Flight", "fields": []}', team=team, actor="admin", now=make.NOW
    )
    return {
        "datasets/<str:name>": flights.name,
        "<str:subject>": "flights-value",
        "versions/<str:version>": "1",
        "versions/<int:number>": "1",
        "ids/<int:number>": str(schema.pk),
        "connections/<str:name>": "ops",
        "onboarding/<str:name>": flights.name,
        "<str:data_center>": "dc1",
        "<str:key>": test.key,
        "rules/<int:number>": str(rule.pk),
        "incidents/<int:number>": str(incident.pk),
        "incidents/<int:pk>": str(incident.pk),
        "units/<int:number>": str(unit.pk),
        "rows/<int:unit>": str(unit.pk),
        "differences/<int:unit>": str(unit.pk),
        "teams/<str:name>": team.name,
        "members/<str:username>": "viewer",
        "routes/<int:number>": str(route.pk),
        "<str:category>": "others",
        "metrics/<str:name>": metric.name,
        "tokens/<str:prefix>": token.prefix,
        "runs/<int:number>": str(queued.pk),
        "hooks/<str:key>": hook.key,
        "overrides/<int:number>": str(free.pk),
        "bulk/<int:number>": str(done.pk),
        "together/<int:number>": str(done.pk),
        "messages/<str:occasion>": "opened",
        "people/<str:username>": "viewer",
        "sessions/<int:number>": "0",
        "refused-batches/<int:number>": "0",
        "backfills/<int:number>": str(backfill.pk),
        "refused/<int:number>": "0",
        "password-reset/<str:key>": "MQ",
        "readers/<str:reader>": "warehouse_load",
        "<str:token>": "never-made",
    }
