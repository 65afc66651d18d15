"""A backfill is noted at the incidents whose data it has recomputed: one entry of the timeline for each, which grows with the chunks and says in the end how it went."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from django.db import transaction
from django.db.models import Q, QuerySet

from incidents.domain.incident.backfilled import Affected, MadeAnew, Noted, backfilled_text, made_anew_of
from incidents.models import IncidentEvent, Span, UserReport
from incidents.record import transitions
from ingestion.models import Backfill, BackfillState, ChunkState, JobKind, JobRun, JobState
from ingestion.runs.backfills.progress import ended_count
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.error_isolation import log_and_continue
from lakehub.kernel.interval import EVERYTHING, Interval
from lakehub.kernel.partitions import Grain, parse_partition_name

KIND = "backfilled"
"""Of the event."""
LOOK_BACK = timedelta(days=1)
"""How long after its end a backfill is still looked at."""
_NO_NEWS = (KIND, "span_closed", "commented")
"""Kinds of events: what passes now was recomputed while it failed all the same."""
_MAX_REMEMBERED = 20_000
"""Names of partitions: as many as the largest backfill has."""


@dataclass(frozen=True)
class _Work:
    """A backfill in chunks, or a run of its own. `key`, `number`: by which its entries are known. `made`: what was committed of it until now."""

    key: str
    number: int
    copy: DatasetCopy
    asked_by: str
    since: datetime
    made: Sequence[MadeAnew]
    chunks: int = 0
    ending: str = ""
    ended_at: datetime | None = None


def note_backfilled(*, now: datetime) -> int:
    """How many entries were made or changed. A second call changes nothing."""
    noted, since = 0, now - LOOK_BACK
    for backfill in _recent_backfills(since):
        with log_and_continue(f"Noting backfill {backfill.pk} at incidents"):
            noted += _note_news(backfill, now)
    for work in _single_runs(since):
        with log_and_continue(f"Noting run {work.number} at incidents"):
            noted += _note(work)
    return noted


def _recent_backfills(since: datetime) -> QuerySet[Backfill]:
    recent = Backfill.objects.filter(_alive(since)).order_by("pk")
    return recent.select_related("copy__dataset", "copy__data_center", "copy__rebuild")


def _note_news(backfill: Backfill, now: datetime) -> int:
    """Its chunks are read only where there is something new: they are up to 20,000, and it is looked at for a day after its end."""
    if not _is_affected(backfill.copy, backfill.asked_at):
        return 0
    state = _state_of(backfill, now)  # before its chunks: what ends meanwhile is news to the next look
    if backfill.noted and not _noted(backfill.noted).is_outdated(state):
        return 0
    work = _work_of(backfill)
    changed = _note(work) if work.made else 0
    Backfill.objects.filter(pk=backfill.pk).update(noted=asdict(state) | {"at": now.isoformat()})
    return changed


def _noted(stored: Mapping[str, Any]) -> Noted:
    return Noted(datetime.fromisoformat(stored["at"]), stored["ended"], stored["rest"])


def _state_of(backfill: Backfill, now: datetime) -> Noted:
    """Nothing that an incident is about changes without an event of its own, so their number is enough."""
    unresolved = Q(incident__resolved_at=None) | Q(incident__resolved_at__gt=backfill.asked_at)
    events = IncidentEvent.objects.filter(unresolved, incident__dataset=backfill.copy.dataset_id).exclude(
        kind__in=_NO_NEWS
    )
    own = (backfill.state, backfill.error, backfill.resumed_at, backfill.ended_at)
    return Noted(now, ended_count(backfill), "; ".join(map(str, (*own, events.count()))))


def _alive(since: datetime) -> Q:
    return Q(ended_at=None) | Q(ended_at__gt=since)


def _work_of(backfill: Backfill) -> _Work:
    done = backfill.chunks.filter(state=ChunkState.SUCCEEDED, ended_at__isnull=False).order_by("number")
    made = [
        MadeAnew(
            _partitions(backfill.copy, chunk.partitions),
            chunk.began_at or backfill.asked_at,
            chunk.ended_at,
            chunk.run_id,
            chunk.rows,
            chunk.number,
        )
        for chunk in done
        if chunk.ended_at is not None
    ]
    return _Work(
        "backfill",
        backfill.pk,
        backfill.copy,
        backfill.asked_by,
        backfill.asked_at,
        made,
        backfill.chunks.count(),
        _ending(backfill),
        backfill.ended_at,
    )


def _single_runs(since: datetime) -> Iterator[_Work]:
    """Those that are no chunk; keys say nothing of partitions."""
    copies = _affected_copies(since)
    if not copies:
        return
    runs = JobRun.objects.filter(
        copy__in=copies, kind=JobKind.BACKFILL, state=JobState.SUCCEEDED, ended_at__gt=since, chunks=None
    )
    # Sorted here: a database that sorts them might read all backfills of a copy in their order instead.
    recent = runs.select_related("copy__dataset", "copy__data_center", "copy__rebuild")
    for run in sorted(recent, key=lambda run: run.pk):
        if run.ended_at is None or run.params.get("keys"):
            continue
        names = run.params.get("partitions")
        partitions = _partitions(run.copy, names) if names else (("", EVERYTHING),)
        began_at, rows = run.started_at or run.due_at, sum((run.report.get("written") or {}).values())
        made = [MadeAnew(partitions, began_at, run.ended_at, run.pk, rows)]
        yield _Work("run", run.pk, run.copy, run.asked_by, began_at, made)


def _reports(since: datetime) -> QuerySet[UserReport]:
    """What people have said is wrong, and was not over then."""
    return UserReport.objects.filter(Q(fixed_at=None, incident__resolved_at=None) | Q(fixed_at__gt=since))


def _reports_of(copy: DatasetCopy, since: datetime) -> QuerySet[UserReport]:
    return _reports(since).filter(Q(copy=None) | Q(copy=copy), incident__dataset=copy.dataset_id)


def _is_affected(copy: DatasetCopy, since: datetime) -> bool:
    return Span.objects.filter(_alive(since), copy=copy).exists() or _reports_of(copy, since).exists()


def _affected_copies(since: datetime) -> set[int]:
    copies = set(Span.objects.filter(_alive(since)).values_list("copy", flat=True).distinct())
    reported = DatasetCopy.objects.filter(dataset__in=_reports(since).values("incident__dataset"))
    return copies | set(reported.values_list("pk", flat=True))


def _partitions(copy: DatasetCopy, names: Iterable[str]) -> tuple[tuple[str, Interval], ...]:
    """Without those whose names are none of the calendar: no incident is about them alone."""
    layout = copy.layout
    known = ((name, _data_of(name, layout.partition_grain, layout.zone)) for name in names)
    return tuple((name, data) for name, data in known if data is not None)


@lru_cache(_MAX_REMEMBERED)
def _data_of(name: str, grain: Grain, zone: ZoneInfo) -> Interval | None:
    try:
        return parse_partition_name(name, grain, zone)
    except ValueError:
        return None


def _ending(backfill: Backfill) -> str:
    if backfill.state == BackfillState.SUCCEEDED:
        return "The backfill has succeeded."
    if backfill.state == BackfillState.FAILED:
        return f"The backfill has failed: {backfill.error}"
    return f"The backfill was cancelled. {backfill.error}".strip() if backfill.state == BackfillState.CANCELLED else ""


def _note(work: _Work) -> int:
    affected = _affected(work)
    known = {event.incident_id: event for event in _events(affected) if _is_of(event, work)}
    return sum(
        _write(number, work, made)
        for number, of_incident in affected.items()
        if (made := made_anew_of(work.made, of_incident))
        and (number not in known or known[number].text != _text(work, made))
    )


def _affected(work: _Work) -> Mapping[int, list[Affected]]:
    """By incident. What a person has linked to its run has an entry of its own (`incidents.lifecycle.backfills`)."""
    spans, reports = Span.objects.filter(_alive(work.since), copy=work.copy), _reports_of(work.copy, work.since)
    if work.key == "run":
        spans = spans.exclude(incident__backfill_run=work.number)
        reports = reports.exclude(incident__backfill_run=work.number)
    affected = defaultdict[int, list[Affected]](list)
    for incident, start, end, began_at, ended_at in spans.values_list(
        "incident", "start", "end", "began_at", "ended_at"
    ):
        affected[incident].append(Affected(Interval(start, end), began_at, ended_at))
    for incident, start, end, occurred_at, fixed_at in reports.values_list(
        "incident", "start", "end", "occurred_at", "fixed_at"
    ):
        affected[incident].append(Affected(Interval(start, end), occurred_at, fixed_at))
    return affected


def _events(incidents: Iterable[int]) -> Iterable[IncidentEvent]:
    return IncidentEvent.objects.filter(incident__in=[*incidents], kind=KIND)


def _is_of(event: IncidentEvent, work: _Work) -> bool:
    """An entry of a backfill names its newest run too."""
    return event.detail.get(work.key) == work.number and (work.key == "backfill") == ("backfill" in event.detail)


def _text(work: _Work, made: Sequence[MadeAnew]) -> str:
    what = f"{work.key} {work.number}"
    return backfilled_text(made, what, work.asked_by, chunks=work.chunks, ending=work.ending)


def _write(number: int, work: _Work, made: Sequence[MadeAnew]) -> bool:
    """At when the newest of it was committed, or the backfill has ended."""
    text, newest = _text(work, made), made[-1]
    at = max(filter(None, (newest.ended_at, work.ended_at)))
    detail: dict[str, Any] = {work.key: work.number} | ({} if newest.run is None else {"run": newest.run})
    with transaction.atomic():
        incident = transitions.locked_incident(number)
        event = next((each for each in _events([number]) if _is_of(each, work)), None)
        if event is None:
            transitions.add_event(incident, KIND, now=at, text=text, **detail)
        elif event.text != text:
            IncidentEvent.objects.filter(pk=event.pk).update(text=text, at=at, detail=detail)
        else:
            return False
    return True
