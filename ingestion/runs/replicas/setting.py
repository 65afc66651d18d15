"""A copy becomes the replica of another one, or is fed again."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.db.models import Q

from ingestion.models import JobKind, JobRun, ReaderPosition, Replica
from ingestion.pipelines.positions import reader_name as pipeline_reader
from ingestion.runs import job_runs
from ingestion.runs.copy_lag import has_table
from ingestion.runs.leases import hold_off
from ingestion.runs.requests.replicas import reader_name
from lakehub.accounts.audit import audit_log
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.errors import Conflict, NotFound, Refused


def replicate(copy: DatasetCopy, source: DatasetCopy, *, mib_per_s: int | None, actor: str, now: datetime) -> Replica:
    """From now on `copy` is made from `source`: no feed writes it any more. Raises Refused, and Conflict where a job is at work on it."""
    _check(copy, source)
    if mib_per_s is not None and mib_per_s < 1:
        raise Refused(
            f"`mib_per_s` is {mib_per_s}: give a whole number of MiB in a second, at least 1, or leave it out."
        )
    with transaction.atomic():
        hold_off([copy.pk, source.pk])
        _check_circle(copy, source)
        _check_idle(copy)
        facts = {"source": source, "mib_per_s": mib_per_s, "asked_by": actor, "asked_at": now}
        _forget_as_reader(copy)
        replica, _ = Replica.objects.update_or_create(copy=copy, defaults=facts)
        audit_log.record(
            actor, "replicate", f"copy:{copy}", now=now, source=source.data_center.name, mib_per_s=mib_per_s
        )
    return replica


def end_replication(copy: DatasetCopy, *, actor: str, now: datetime) -> JobRun | None:
    """It is fed again, and bootstrapped anew for that: its table reads as it is until then. None: it has no table, so the schedule asks for the bootstrap.

    Raises NotFound, and Conflict where a job is at work on it.
    """
    with transaction.atomic():
        hold_off([copy.pk])
        if not Replica.objects.filter(copy=copy).exists():
            raise NotFound(f"{copy} is not replicated.")
        _check_idle(copy)
        _forget_as_reader(copy)
        Replica.objects.filter(copy=copy).delete()
        audit_log.record(actor, "end-replication", f"copy:{copy}", now=now)
        if not has_table(copy):
            return None
        return job_runs.request_run(copy, JobKind.BOOTSTRAP, {"replace": True}, asked_by=actor, now=now)


def _forget_as_reader(copy: DatasetCopy) -> None:
    """Nobody keeps files for it any more: its former source, and inputs of the pipeline that makes it where it is not replicated."""
    of_source = Q(copy__dataset=copy.dataset_id, name=reader_name(copy))
    of_inputs = Q(copy__data_center=copy.data_center_id, name=pipeline_reader(copy.dataset))
    ReaderPosition.objects.filter(of_source | of_inputs).delete()


def _check(copy: DatasetCopy, source: DatasetCopy) -> None:
    dataset = copy.dataset
    if not dataset.ingested:
        raise Refused(f"Dataset `{dataset.name}` is monitored where it lies: Lakehub does not write it.")
    if copy.dataset_id != source.dataset_id:
        raise Refused(f"{source} is of another dataset: a copy is replicated from one of its own.")
    if copy.pk == source.pk:
        raise Refused(f"{copy} cannot be replicated from itself: name another data center.")


def _check_circle(copy: DatasetCopy, source: DatasetCopy) -> None:
    """Raises Refused where the source is made from the copy, however far away."""
    sources = dict(Replica.objects.filter(copy__dataset=copy.dataset_id).values_list("copy", "source"))
    at: int | None = source.pk
    while at is not None:
        if at == copy.pk:
            raise Refused(
                f"{source} is itself made from {copy}, so neither would get new rows. End that replication first."
            )
        at = sources.get(at)


def _check_idle(copy: DatasetCopy) -> None:
    """A run that follows it ends by itself."""
    active = JobRun.objects.filter(copy=copy, state__in=job_runs.ACTIVE).exclude(
        kind__in=(JobKind.FOLLOW, JobKind.REPLICATE)
    )
    active = active | JobRun.objects.filter(copy=copy, state="running", kind=JobKind.REPLICATE)
    if (run := active.order_by("pk").first()) is not None:
        raise Conflict(
            f"Run {run.pk}, a {run.kind} of {copy}, is {run.state}; nothing was changed. Ask again when it has ended, or cancel it."
        )
