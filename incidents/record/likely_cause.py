"""What probably made it fail: the first of these that happened between the last pass and the failure, nearest to the source first.

An incident of a dataset upstream over the same data, an incompatible schema, a commit that deleted rows of this data, a
job that failed, columns that changed, a run that is late, a test that was changed. A guess, and said as one: a person's
root cause stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.db.models import Exists, Max, OuterRef, Q
from django.urls import reverse

from incidents.models import Incident, Span
from ingestion.lake.findings import JOB_FAILING, SCHEMA_INCOMPATIBLE
from ingestion.models import Commit, Finding, JobRun, JobState, TouchedPartition
from ingestion.runs.index_use.allowances import WAITS_FOR_CLUSTER
from lakehub.accounts.models import AuditEntry
from lakehub.catalog.models import Feed, FeedKind, LineageEdge
from quality.models import Category, QualityTestVersion

MAX_UPSTREAM_LEVELS = 3
"""How far up the lineage to look."""
DEFAULT_LOOKBACK = timedelta(days=1)
"""How far to look back where nothing ever passed."""
LATENESS_SLACK = timedelta(minutes=1)
RUN_CATEGORIES = (Category.FRESHNESS, Category.COMPLETENESS, Category.CONSISTENCY, Category.INGESTION)
"""What a run that failed or is late explains: rows that are not there."""
UPSTREAM_SEEN_WITHIN = timedelta(hours=1)
"""A test upstream may see the same trouble somewhat later than a test here."""


REPLACING_OPERATIONS = ("delete_partition", "insert_overwrite", "insert_overwrite_table")


class CauseKind(StrEnum):
    UPSTREAM = "upstream"
    SCHEMA_CHANGE = "schema_change"
    ROWS_DELETED = "rows_deleted"
    JOB_FAILED = "job_failed"
    LATE_RUN = "late_run"
    TEST_CHANGED = "test_changed"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class LikelyCause:
    """`link` is an address of a page here, from the first slash on; empty where there is none."""

    kind: CauseKind
    text: str
    link: str = ""


UNKNOWN_CAUSE = LikelyCause(
    CauseKind.UNKNOWN,
    "not known: nothing upstream fails, no schema changed, no rows were deleted, no run failed or is late",
)
NOT_DETECTED = LikelyCause(CauseKind.UNKNOWN, "not known: a person saw it, no test did")


@dataclass(frozen=True)
class _FailureContext:
    """What failed where, from the last pass until it was over or now."""

    incident: Incident
    spans: Sequence[Span]
    copies: frozenset[int]
    passed_at: datetime
    since: datetime
    until: datetime

    @property
    def data(self) -> Q:
        """Rows with a start and an end that meet what fails."""
        start, end = min(span.start for span in self.spans), max(span.end for span in self.spans)
        return Q(start__lt=end, end__gt=start)


def likely_cause(incident: Incident, *, now: datetime, spans: Sequence[Span]) -> LikelyCause:
    """At most nine queries. `spans` are its spans with their units, tests, versions and copies."""
    case = _failure_context(incident, spans, now)
    if case is None:
        return NOT_DETECTED
    return next((cause for look in _DETECTORS if (cause := look(case))), UNKNOWN_CAUSE)


def _failure_context(incident: Incident, spans: Sequence[Span], now: datetime) -> _FailureContext | None:
    """None: no test saw it, so there is nothing to look at."""
    about = [span for span in spans if span.ended_at is None] or list(spans)
    if not about:
        return None
    since = min(span.began_at for span in about)
    passes = [span.unit.last_pass_at for span in about if span.unit.last_pass_at and span.unit.last_pass_at <= since]
    return _FailureContext(
        incident,
        about,
        frozenset(span.copy_id for span in about),
        passed_at=max(min(passes, default=since - DEFAULT_LOOKBACK), since - timedelta(days=30)),
        since=since,
        until=incident.resolved_at or now,
    )


def _upstream_incident(case: _FailureContext) -> LikelyCause | None:
    """The one that began first: the others may follow from it."""
    edges = LineageEdge.objects.filter(downstream=case.incident.dataset_id)
    above = Q(incident__dataset__in=edges.values("upstream"))
    for _ in range(MAX_UPSTREAM_LEVELS - 1):
        edges = LineageEdge.objects.filter(downstream__in=edges.values("upstream"))
        above |= Q(incident__dataset__in=edges.values("upstream"))
    centers = {span.copy.data_center_id for span in case.spans}
    alive = Q(ended_at=None) | Q(ended_at__gte=case.since)
    spans = Span.objects.filter(
        above, case.data, alive, copy__data_center__in=centers, began_at__lte=case.since + UPSTREAM_SEEN_WITHIN
    )
    candidates = spans.exclude(incident__dataset=case.incident.dataset_id).select_related("incident__dataset")
    span = candidates.order_by("began_at", "pk").first()
    if span is None:
        return None
    incident = span.incident
    text = f"upstream: {incident.title} (incident #{incident.pk} of {incident.dataset.name}, since {_utc_text(span.began_at)})"
    return LikelyCause(CauseKind.UPSTREAM, text, reverse("incident", args=[incident.pk]))


def _finding(case: _FailureContext) -> LikelyCause | None:
    """A job is given up after its fifth failure; what it lacks was missing from when it was due."""
    live = Q(cleared_at=None) | Q(cleared_at__gte=case.passed_at)
    before = Q(kind=SCHEMA_INCOMPATIBLE, raised_at__lte=case.since) | Q(kind=JOB_FAILING, start__lte=case.since)
    rows = Finding.objects.filter(live, before, copy__in=case.copies, raised_at__lte=case.until)
    by_kind = {row.kind: row for row in rows.order_by("raised_at")}
    finding = by_kind.get(SCHEMA_INCOMPATIBLE) or (
        by_kind.get(JOB_FAILING) if case.incident.category in RUN_CATEGORIES else None
    )
    if finding is None:
        return None
    message = str(finding.detail.get("message") or finding.kind.replace("_", " "))[:300]
    if finding.kind == SCHEMA_INCOMPATIBLE:
        return LikelyCause(
            CauseKind.SCHEMA_CHANGE, f"schema change at {_utc_text(finding.raised_at)}: {message}", _ingestion_url(case)
        )
    return LikelyCause(
        CauseKind.JOB_FAILED, f"job failed at {_utc_text(finding.raised_at)}: {message}", _ingestion_url(case)
    )


def _deleted_rows(case: _FailureContext) -> LikelyCause | None:
    """The commit that deleted the most of what fails now. Deleted rows make no duplicates."""
    if case.incident.category == Category.DUPLICATES:
        return None
    touched = TouchedPartition.objects.filter(case.data, commit=OuterRef("pk"))
    commits = Commit.objects.filter(
        Exists(touched), copy__in=case.copies, completed_at__gte=case.passed_at, completed_at__lte=case.since
    ).filter(Q(deletes__gt=0) | Q(operation__in=REPLACING_OPERATIONS))
    commit = commits.select_related("copy__data_center", "run").order_by("-deletes", "-completed_at").first()
    if commit is None:
        return None
    what = f"deleted {commit.deletes:,} rows" if commit.deletes else "replaced what was there"
    by = f", requested by {commit.run.asked_by}" if commit.run is not None and commit.run.asked_by else ""
    where, at = commit.copy.data_center.name, _utc_text(commit.completed_at)
    text = f"rows deleted: the {commit.operation} of {where} at {at} {what} of this data{by}"
    return LikelyCause(CauseKind.ROWS_DELETED, text, _ingestion_url(case))


def _failed_run(case: _FailureContext) -> LikelyCause | None:
    """Also one that is tried again. One that waits for its index cluster has not failed, and is late."""
    if case.incident.category not in RUN_CATEGORIES:
        return None
    runs = JobRun.objects.filter(copy__in=case.copies, started_at__gte=case.passed_at, started_at__lte=case.since)
    run = runs.exclude(error="").select_related("copy__dataset", "copy__data_center").order_by("-pk").first()
    if run is None or run.started_at is None:
        return None
    if run.error.startswith(WAITS_FOR_CLUSTER):
        text = f"late run: the {run.kind} of {run.copy} {' '.join(run.error.split())[:300]}"
        return LikelyCause(CauseKind.LATE_RUN, text, _ingestion_url(case))
    again = "" if run.state == JobState.FAILED else f", tried {run.attempt} times"
    why = " ".join(run.error.split())[:200]
    return LikelyCause(
        CauseKind.JOB_FAILED,
        f"job failed: {run.kind} of {run.copy} at {_utc_text(run.started_at)}{again}: {why}",
        _ingestion_url(case),
    )


def _schema_change(case: _FailureContext) -> LikelyCause | None:
    name = case.incident.dataset.name
    entries = AuditEntry.objects.filter(subject=f"dataset:{name}", at__gte=case.passed_at, at__lte=case.since)
    change = entries.filter(action="schema").order_by("-at").first()
    if change is None:
        return None
    return LikelyCause(
        CauseKind.SCHEMA_CHANGE,
        f"schema change: the columns of {name} changed, seen at {_utc_text(change.at)}",
        _settings_url(case),
    )


def _late_run(case: _FailureContext) -> LikelyCause | None:
    if case.incident.category not in RUN_CATEGORIES:
        return None
    feed = Feed.objects.filter(dataset=case.incident.dataset_id).first()
    paused = f"the feed is {feed.pause_text}" if feed is not None and feed.paused else ""
    if feed is None or feed.kind != FeedKind.CONNECTION:
        return _late_commit(case, paused)
    done = JobRun.objects.filter(copy__in=case.copies, state=JobState.SUCCEEDED, ended_at__lte=case.until)
    last = dict(done.values_list("copy").annotate(at=Max("ended_at")))
    oldest = min((last.get(copy) for copy in case.copies), key=lambda at: (at is not None, at), default=None)
    return _lateness_cause(case, oldest, 2 * feed.every + LATENESS_SLACK, "run", paused)


def _late_commit(case: _FailureContext, paused: str) -> LikelyCause | None:
    """No run of a schedule writes it: how often is not known, so only a table that nobody wrote since it passed is late."""
    if case.incident.category != Category.FRESHNESS and not paused:
        return None
    last = Commit.objects.filter(copy__in=case.copies, completed_at__lte=case.until).aggregate(at=Max("completed_at"))[
        "at"
    ]
    return _lateness_cause(case, last, case.until - case.passed_at, "commit", paused) if last or paused else None


def _lateness_cause(
    case: _FailureContext, last: datetime | None, within: timedelta, activity: str, why: str
) -> LikelyCause | None:
    if last is not None and case.until - last <= within and not why:
        return None
    text = f"no {activity} has ended yet" if last is None else f"the last {activity} ended at {_utc_text(last)}"
    return LikelyCause(CauseKind.LATE_RUN, f"late run: {text}{f'; {why}' if why else ''}", _ingestion_url(case))


def _test_changed(case: _FailureContext) -> LikelyCause | None:
    for span in case.spans:
        version = span.unit.test.version
        if version is None or not case.passed_at <= version.created_at <= case.since:
            continue
        if _asks_something_else(version):
            test = span.unit.test
            text = f"the test changed: {test.title} is version {version.number} since {_utc_text(version.created_at)}"
            because = f", because {version.because}" if version.because else ""
            return LikelyCause(
                CauseKind.TEST_CHANGED,
                text + because,
                reverse("dataset-test", args=[case.incident.dataset.name, test.key]),
            )
    return None


def _asks_something_else(version: QualityTestVersion) -> bool:
    """Than the version before: what only changes when it runs or whom it pages makes nothing fail."""
    before = QualityTestVersion.objects.filter(test=version.test_id, number__lt=version.number).order_by("-number")
    flattened = before.values_list("flattened", flat=True).first()
    return flattened is not None and flattened != version.flattened


_DETECTORS: tuple[Callable[[_FailureContext], LikelyCause | None], ...] = (
    _upstream_incident,
    _finding,
    _deleted_rows,
    _failed_run,
    _schema_change,
    _late_run,
    _test_changed,
)


def _ingestion_url(case: _FailureContext) -> str:
    return reverse("dataset-ingestion", args=[case.incident.dataset.name])


def _settings_url(case: _FailureContext) -> str:
    return reverse("dataset-settings", args=[case.incident.dataset.name])


def _utc_text(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
