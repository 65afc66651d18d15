"""Consistent objects for tests: one plain function a model, every argument optional but what the object belongs to.

Times hang off NOW, so that a test reads the same whenever it runs. `tests/fleet.py` puts a whole fleet together.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any
from zoneinfo import ZoneInfo

from django.contrib.auth.models import Permission
from django.test import Client

from incidents.models import Incident, IncidentEvent, IncidentState, Message, MessageState, Span
from ingestion.models import (
    Backfill,
    BackfillChunk,
    Commit,
    JobKind,
    JobRun,
    JobState,
    SchemaSubject,
    SchemaVersion,
    TouchedPartition,
)
from ingestion.schemas.avro_text import digest_of
from lakehub.accounts.models import Membership, Role, Team, User
from lakehub.catalog.datasets import grace_periods
from lakehub.catalog.models import (
    Connection,
    DataCenter,
    Dataset,
    DatasetCopy,
    DatasetKind,
    Feed,
    FeedKind,
    LineageEdge,
)
from lakehub.kernel.interval import EVERYTHING, Interval
from lakehub.kernel.outcome import Outcome, Verdict
from lakehub.kernel.partitions import Grain, partition_at
from quality.models import Category, QualityTest, QualityTestVersion, Result, Unit

NOW = datetime(2026, 11, 17, 19, 32, tzinfo=UTC)
"""Tuesday 14:32 in New York."""
NEW_YORK = ZoneInfo("America/New_York")
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
PASSWORD = "correct horse battery staple"

_serial = count(1)


def day(text: str, tz: ZoneInfo = NEW_YORK) -> Interval:
    """The day `2026-11-16` in `tz`."""
    return partition_at(datetime.fromisoformat(text).replace(hour=12, tzinfo=tz), Grain.DAY, tz)


def user(username: str = "", **fields: Any) -> User:
    return User.objects.create_user(username or f"user{next(_serial)}", password=PASSWORD, **fields)


def staff(*permissions: str) -> Client:
    """A browser in which somebody of the staff with these permissions is signed in."""
    person = user(is_staff=True)
    person.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client = Client()
    client.force_login(person)
    return client


def team(name: str = "flight-ops") -> Team:
    return Team.objects.get_or_create(name=name)[0]


def member(user: User, team: Team, role: Role = Role.ON_CALL) -> Membership:
    return Membership.objects.create(user=user, team=team, role=role)


def data_center(name: str = "dc1", lake_uri: str = "") -> DataCenter:
    return DataCenter.objects.get_or_create(name=name, defaults={"lake_uri": lake_uri or f"file:///lake/{name}"})[0]


def connection(
    name: str = "ops", url: str = "sqlite:///:memory:", plugin: str = "sql", owner: Team | None = None
) -> Connection:
    existing = Connection.objects.filter(name=name).first()
    return existing or Connection.objects.create(name=name, url=url, plugin=plugin, team=owner or team())


def dataset(name: str = "", *, copies: Sequence[str] = ("dc1",), by_day: bool = True, **fields: Any) -> Dataset:
    """An onboarded dataset with its copies, monitored for 60 days, partitioned by day in New York unless told."""
    name = name or f"dataset{next(_serial)}"
    partitioned: dict[str, Any] = {
        "partition_column": "flight_date",
        "grain": Grain.DAY,
        "partition_tz": "America/New_York",
    }
    made = Dataset.objects.create(
        **{
            "name": name,
            "team": fields.pop("team", None) or team(),
            "tier": 2,
            "kind": DatasetKind.APPEND_PLUS_UPDATE,
            "columns": [{"name": "id", "type": "bigint", "nullable": False}],
            "primary_key": ["id"],
            "record_key": ["id"],
            "onboarded_at": NOW - 60 * DAY,
            **(partitioned if by_day else {}),
            **fields,
        }
    )
    if made.grace_until is not None:
        grace_periods.record_grace_period(made, made.grace_until, now=made.onboarded_at)
    for where in copies:
        copy(made, where)
    return made


def copy(dataset: Dataset, where: str = "dc1", **fields: Any) -> DatasetCopy:
    center = data_center(where)
    fields = {"uri": f"{center.lake_uri}/{dataset.name}", "monitored_from": NOW - 60 * DAY, **fields}
    return DatasetCopy.objects.create(dataset=dataset, data_center=center, **fields)


def copy_of(dataset: Dataset, where: str = "dc1") -> DatasetCopy:
    return dataset.copies.get(data_center__name=where)


def feed(dataset: Dataset, kind: FeedKind = FeedKind.CONNECTION, **fields: Any) -> Feed:
    """Of the connection `ops` unless told; the other kinds have none."""
    fields = {
        "kind": kind,
        "connection": fields.pop("connection", None) or (connection() if kind == FeedKind.CONNECTION else None),
        "object": dataset.name,
        "cursor_column": "updated_at",
        **fields,
    }
    return Feed.objects.create(dataset=dataset, **fields)


def feed_of_kind(dataset: Dataset, kind: FeedKind) -> Feed:
    """Gives a dataset that is fed another kind of feed, whose object is `flights-changes`; a connection stays `ops`."""
    connection_or_none = connection() if kind == FeedKind.CONNECTION else None
    Feed.objects.filter(dataset=dataset).update(kind=kind, connection=connection_or_none, object="flights-changes")
    dataset.refresh_from_db()
    return dataset.feed


def edge(upstream: Dataset, downstream: Dataset, *, one_to_one: bool = False) -> LineageEdge:
    return LineageEdge.objects.create(upstream=upstream, downstream=downstream, one_to_one=one_to_one)


def quality_test(
    dataset: Dataset,
    category: Category = Category.DUPLICATES,
    *,
    key: str = "",
    title: str = "Primary key",
    check_name: str = "",
    expression: str = "duplicates(this) < 0.1%",
    gating: bool = True,
    planned: bool = True,
    **version: Any,
) -> QualityTest:
    """A test with its first version. `version` takes the fields of QualityTestVersion."""
    made = QualityTest.objects.create(
        dataset=dataset,
        key=key or f"{category}-{next(_serial)}",
        title=title,
        category=category,
        check_name=check_name or category,
        gating=gating,
        planned=planned,
    )
    made.version = QualityTestVersion.objects.create(
        test=made,
        number=1,
        expression=expression,
        flattened=expression,
        **{
            "sustain": 2 * HOUR,
            "due_after": HOUR,
            "rerun_base": 5 * MINUTE,
            "rerun_cap": HOUR,
            "created_at": NOW - 60 * DAY,
            "because": "tier 2",
            **version,
        },
    )
    made.save(update_fields=["version"])
    return made


test = quality_test
"""`factories.test(...)` reads well; pytest must not take the function for a test where its name is imported."""


def unit(
    test: QualityTest,
    copy: DatasetCopy | None = None,
    over: Interval = EVERYTHING,
    verdict: Verdict = Verdict.PASS,
    **facts: Any,
) -> Unit:
    """A unit whose facts agree with `verdict` at NOW: pass, warn (failing within the sustain period), fail or unknown."""
    assert test.version is not None
    sustain = test.version.sustain
    facts_by_verdict: dict[Verdict, dict[str, Any]] = {
        Verdict.PASS: {
            "latest_outcome": Outcome.PASS,
            "latest_at": NOW - HOUR,
            "last_pass_at": NOW - HOUR,
            "reason": "passing",
        },
        Verdict.UNKNOWN: {
            "latest_outcome": Outcome.ERROR,
            "latest_at": NOW - HOUR,
            "last_pass_at": NOW - DAY,
            "reason": "error",
        },
        Verdict.WARN: _streak(NOW - sustain / 2, NOW - sustain / 4, sustain, "in_sustain"),
        Verdict.FAIL: _streak(NOW - sustain - HOUR, NOW - HOUR / 2, sustain, "sustained"),
    }
    return Unit.objects.create(
        test=test,
        copy=copy or test.dataset.copies.all()[0],
        start=over.start,
        end=over.end,
        verdict=verdict,
        **{"verdict_at": NOW - HOUR, **facts_by_verdict[verdict], **facts},
    )


def _streak(first: datetime, last: datetime, sustain: timedelta, reason: str) -> dict[str, Any]:
    return {
        "first_fail_at": first,
        "last_fail_at": last,
        "sustain": sustain,
        "latest_outcome": Outcome.FAIL,
        "latest_at": last,
        "last_pass_at": first - DAY,
        "reason": reason,
        "attempt": 3,
        "due_at": NOW + 27 * MINUTE,
    }


def result(unit: Unit, outcome: Outcome = Outcome.PASS, *, read_at: datetime = NOW - HOUR, **fields: Any) -> Result:
    assert unit.test.version is not None
    return Result.objects.create(
        unit=unit,
        version=unit.test.version,
        outcome=outcome,
        read_at=read_at,
        **{"trigger": "schedule", "started_at": read_at, "ended_at": read_at + timedelta(seconds=2), **fields},
    )


def run(
    copy: DatasetCopy, kind: JobKind = JobKind.INCREMENTAL, state: JobState = JobState.SUCCEEDED, **fields: Any
) -> JobRun:
    fields = {"due_at": NOW - HOUR, "started_at": NOW - HOUR, "ended_at": NOW - HOUR + MINUTE, **fields}
    return JobRun.objects.create(copy=copy, kind=kind, state=state, **fields)


def backfill(copy: DatasetCopy, *names: str, **fields: Any) -> Backfill:
    """Of these partitions, or of one day, in one chunk that waits."""
    names = names or ("2026-11-16",)
    fields = {"asked_by": "ana", "asked_at": NOW, "resumed_at": NOW, "chunk_size": 10, **fields}
    made = Backfill.objects.create(copy=copy, first=names[0], last=names[-1], **fields)
    BackfillChunk.objects.create(backfill=made, number=1, partitions=list(names), size=len(names))
    return made


def commit(
    copy: DatasetCopy, completed_at: datetime = NOW - HOUR, touched: Sequence[Interval] = (), **counts: Any
) -> Commit:
    """A commit whose sum holds: read = applied + superseded + redelivered + errors."""
    counts = {"applied": 14, "superseded": 0, "redelivered": 0, "errors": 0, "inserts": 10, "updates": 4, **counts}
    counts.setdefault("read", counts["applied"] + counts["superseded"] + counts["redelivered"] + counts["errors"])
    fields = {"operation": "upsert", "instant": f"{completed_at:%Y%m%d%H%M%S}{next(_serial) % 1000:03}", **counts}
    made = Commit.objects.create(
        copy=copy, completed_at=completed_at, source_committed_upto=completed_at - 4 * MINUTE, **fields
    )
    for partition in touched:
        TouchedPartition.objects.create(
            commit=made,
            copy=copy,
            start=partition.start,
            end=partition.end,
            rows=made.applied or 0,
            claimed_at=completed_at,
        )
    return made


def with_table(copy: DatasetCopy) -> DatasetCopy:
    """The lake holds a table of it: there is a commit, and a run that made it is not known."""
    if not copy.commits.exists():
        commit(copy, NOW - 60 * DAY)
    return copy


def incident(dataset: Dataset, category: Category = Category.CONSISTENCY, *units: Unit, **fields: Any) -> Incident:
    """An open incident with an active span for each unit, and the event that opened it."""
    opened_at = fields.get("opened_at", NOW - 2 * HOUR)
    made = Incident.objects.create(
        dataset=dataset,
        category=category,
        **{"title": f"{category.label} of {dataset.name} fails", "opened_at": opened_at, **fields},
    )
    for failing_unit in units:
        span(made, failing_unit)
    event(made, "opened", at=opened_at, becomes=IncidentState.OPEN)
    return made


def span(incident: Incident, unit: Unit, **fields: Any) -> Span:
    began_at = unit.first_fail_at or incident.opened_at
    fields = {"start": unit.start, "end": unit.end, "began_at": began_at, "ended_at": incident.resolved_at, **fields}
    return Span.objects.create(incident=incident, unit=unit, copy=unit.copy, **fields)


def event(incident: Incident, kind: str, *, at: datetime = NOW - HOUR, **fields: Any) -> IncidentEvent:
    return IncidentEvent.objects.create(incident=incident, kind=kind, at=at, **fields)


def message(
    incident: Incident, state: MessageState = MessageState.SENT, *, at: datetime = NOW - HOUR, **fields: Any
) -> Message:
    sent_at = at + timedelta(seconds=4) if state == MessageState.SENT else None
    fields = {
        "channel": "email",
        "address": "ops@example.org",
        "occasion": "opened",
        "subject": incident.title,
        **fields,
    }
    return Message.objects.create(
        incident=incident, state=state, created_at=at, due_at=at, sent_at=sent_at, body="", **fields
    )


def schema_version(subject: str, schema: Any, *, owner: Team | None = None, **fields: Any) -> SchemaVersion:
    """The next version of a subject, without a look at its rule and without a line of the audit log."""
    made, _ = SchemaSubject.objects.get_or_create(
        name=subject, defaults={"team": owner or team(), "compatibility": "backward"}
    )
    fields = {"registered_by": "ana", "registered_at": NOW - DAY, "digest": digest_of(schema), **fields}
    return made.versions.create(version=made.versions.count() + 1, text=json.dumps(schema), **fields)
