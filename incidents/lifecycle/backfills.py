"""The job that repairs what an incident affects: asked for from it, linked to it, followed to its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from django.db import transaction

from incidents.models import Backfill, Incident, Span
from incidents.record import transitions
from ingestion.models import JobKind, JobRun, JobState
from ingestion.runs import job_runs
from ingestion.runs.requests.source_checks import check_source
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.error_isolation import log_and_continue
from lakehub.kernel.errors import Conflict, Refused
from lakehub.kernel.interval import BEGINNING, Interval, union
from lakehub.kernel.partitions import partitions_within

MAX_PARTITIONS = 400


def start_backfill(
    number: int, *, data_center: str = "", actor: str, now: datetime, expected_revision: int | None = None
) -> JobRun:
    """Asks for a backfill of what is affected in one data center, or where most fails. Raises Refused, NotFound, Conflict."""
    with transaction.atomic():
        incident = transitions.incident_by_number(number)
        spans = list(Span.objects.filter(incident=incident, ended_at=None).select_related("copy__data_center"))
        if not spans:
            raise Conflict(f"Nothing of #{number} fails, so there is nothing to repair. Nothing was changed.")
        check_source(incident.dataset, JobKind.BACKFILL)
        copy = _copy_to_repair(incident, spans, data_center)
        params = _backfill_params([span for span in spans if span.copy_id == copy.pk], incident, now)
        run = job_runs.request_run(copy, JobKind.BACKFILL, params, asked_by=actor, now=now)
        transitions.update_incident(
            incident, {"backfill": Backfill.RUNNING.value, "backfill_run": run}, expected_revision=expected_revision
        )
        text = f"backfill of {copy}: run {run.pk}"
        transitions.add_event(incident, "annotated", now=now, actor=actor, text=text, fields=["backfill"], run=run.pk)
    return run


def follow_backfills(*, now: datetime) -> int:
    """Backfills whose job ended: done where it succeeded, needed again where it did not. How many."""
    linked = Incident.objects.filter(resolved_at=None, backfill=Backfill.RUNNING, backfill_run__isnull=False)
    over = linked.filter(backfill_run__state__in=(JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED))
    ended = list(over.select_related("backfill_run", "dataset__team"))
    for incident in ended:
        with log_and_continue(f"Following the backfill of #{incident.pk}"), transaction.atomic():
            _finish_backfill(incident, incident.backfill_run, now)
    return len(ended)


def _finish_backfill(incident: Incident, run: JobRun | None, now: datetime) -> None:
    if run is None:
        return
    becomes = Backfill.DONE if run.state == JobState.SUCCEEDED else Backfill.NEEDED
    transitions.update_incident(incident, {"backfill": becomes.value})
    text = f"run {run.pk} {run.state}; backfill: {becomes.label}"
    transitions.add_event(incident, "annotated", now=now, text=text, fields=["backfill"], run=run.pk)


def _copy_to_repair(incident: Incident, spans: Iterable[Span], data_center: str) -> DatasetCopy:
    if data_center:
        return job_runs.find_copy(incident.dataset, data_center)
    most = Counter(span.copy_id for span in spans).most_common(1)[0][0]
    return DatasetCopy.with_removed.select_related("dataset__team", "data_center").get(pk=most)


def _backfill_params(spans: Iterable[Span], incident: Incident, now: datetime) -> dict[str, list[str]]:
    """The affected partitions by name; nothing for a table without partitions."""
    dataset = incident.dataset
    if not dataset.partition_column:
        return {}
    ranges = union(Interval(span.start, min(span.end, now)) for span in spans if span.start < now)
    if any(data_range.start <= BEGINNING for data_range in ranges):
        raise Refused(
            f"#{incident.pk} affects the whole table: ask for a bootstrap, or a backfill of partitions by name."
        )
    grain, zone = dataset.partition_grain, dataset.zone
    names = [
        dataset.partition_label(part) for data_range in ranges for part in partitions_within(data_range, grain, zone)
    ]
    if not names:
        raise Refused(f"Nothing of #{incident.pk} affects {dataset.name} there.")
    if len(names) > MAX_PARTITIONS:
        raise Refused(f"#{incident.pk} affects {len(names)} partitions; {MAX_PARTITIONS} at most in one backfill.")
    return {"partitions": names}
