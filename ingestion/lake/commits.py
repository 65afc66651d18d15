"""The lake's own timeline as rows: every commit once, with the partitions that it touched, whoever made it.

A job's report is a hint; this is the truth. A commit that was made just before its job died is found here as well.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F, OuterRef, Q, Subquery, Sum, Value
from django.db.models.functions import Coalesce

from ingestion.domain.checkpoint import run_of_commit
from ingestion.domain.write_races import REPLACING_OPERATIONS
from ingestion.index_shares.shares import note_commit
from ingestion.index_shares.standing import HBASE
from ingestion.lake import findings
from ingestion.lake.captured import hours
from ingestion.lake.captured.skipped_changes import note_skipped
from ingestion.lake.index_findings import note_corrected
from ingestion.lake.lake_copies import table_uri
from ingestion.lake.misplaced_rows import (
    MAX_NAMED_VALUES,
    report_more_unreadable_values,
    report_rows_ahead,
    report_unreadable_values,
)
from ingestion.lake.touches import load_parts
from ingestion.lake.touches.follow_batches import merge_into_rows
from ingestion.lake.touches.load_parts import Touches
from ingestion.models import Commit, Finding, JobKind, JobRun, TouchedPartition
from ingestion.spark.tables.timeline import CompletedFile, DamagedTable, LakeCommit, PartitionChange, Timeline
from lakehub.catalog.datasets import changes
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.errors import Refused
from lakehub.kernel.interval import BEGINNING, EVERYTHING, FOREVER, Interval
from lakehub.kernel.partitions import Grain, parse_partition_name, partition_at
from lakehub.processes.task_wakeup import wake_task

logger = logging.getLogger(__name__)
_FULL_LOOKS = (JobKind.BOOTSTRAP, JobKind.INCREMENTAL)
"""The jobs that see all rows without a place in the cursor's order; a backfill reads some partitions only."""
_REMEDY = (
    "The table keeps the columns that it has, and its changes go on; a value that does not fit them goes to the error table. Register a version that "
    "fits the table, or deprecate the one that does not."
)
_KEY_LENGTH = len(str(UUID(int=0)))


def record_new_commits(copy: DatasetCopy, *, now: datetime) -> list[Commit]:
    """The commits that were not known, in the order of their completion. Safe to run twice, or in two processes at once.

    Raises DamagedTable; of a table that others write all that can be read is recorded before, so that what reads it goes on.
    """
    # Asked after each batch of a follower: its own table needs no connection.
    timeline = Timeline(copy.uri or table_uri(copy))
    files = timeline.completed() if timeline.exists else []
    if not files:
        return []
    # A range: a timeline may hold more commits than a query takes values.
    stored_commits = Commit.objects.filter(copy=copy, instant__gte=min(file.instant for file in files))
    known_instants = set(stored_commits.values_list("instant", flat=True))
    new_files = [file for file in files if file.instant not in known_instants]
    if copy.uri:
        return _record_all(copy, timeline.read(new_files), now=now)
    lake_commits, damaged = _by_others(timeline, new_files)
    recorded_commits = _record_all(copy, lake_commits, now=now)
    if damaged is not None:
        raise damaged
    return recorded_commits


def _record_all(copy: DatasetCopy, lake_commits: Sequence[LakeCommit], *, now: datetime) -> list[Commit]:
    schemas = [commit.run.get("schema", {}) for commit in lake_commits]
    are_columns_changed = any(_changes_columns(schema, copy.dataset) for schema in schemas)
    recorded_commits = [record_commit(copy, commit, now=now) for commit in lake_commits]
    if any(recorded_commits):
        wake_task(settings.LAKEHUB_TASK_ON_COMMIT)
    if are_columns_changed:
        _refresh_columns(copy.dataset, now=now)
    return [commit for commit in recorded_commits if commit is not None]


def _by_others(timeline: Timeline, files: Iterable[CompletedFile]) -> tuple[list[LakeCommit], DamagedTable | None]:
    """Of a table that Lakehub only monitors: what a Lakehub of others has left in it is about its own source and jobs, and no fact of this one. And why one cannot be read."""
    lake_commits = list[LakeCommit]()
    damaged: DamagedTable | None = None
    for file in files:
        try:
            lake_commits += timeline.read([file])
        except DamagedTable as problem:
            damaged = problem
    return [_without_facts(commit) for commit in lake_commits], damaged


def _without_facts(commit: LakeCommit) -> LakeCommit:
    return replace(
        commit, run={}, checkpoint_json="", is_part_of_load=False, has_digest_of_source=False, schema_version=None
    )


def _changes_columns(schema: dict[str, Any], dataset: Dataset) -> bool:
    """Columns came, were widened, or are gone from the source since they were read last."""
    known_names = {column["name"] for column in dataset.columns}
    return bool(schema.get("added") or schema.get("widened") or known_names.intersection(schema.get("missing", ())))


def _refresh_columns(dataset: Dataset, *, now: datetime) -> None:
    """A column that came with a commit is one that tests may name. A source that is out of reach now is asked again by hand."""
    try:
        changes.refresh_columns(dataset, actor="ingestion", now=now)
    except Refused as problem:
        logger.warning("the columns of %s were not read again: %s", dataset, problem)


def record_commit(copy: DatasetCopy, lake_commit: LakeCommit, *, now: datetime) -> Commit | None:
    """None: another process was faster. What the parts of a load touched is tested when the last commit has made it whole."""
    is_of_load = lake_commit.run.get("kind") == JobKind.BOOTSTRAP
    touches = Touches(touched_partitions(lake_commit, copy.layout))
    if is_of_load:
        touches = load_parts.touches_in_load(copy, lake_commit, touches.now)
    facts = {
        "touched_count": len(touches.now),
        "touched_of_part": touches.later,
        "run": _run_of(lake_commit, copy),
        # After a clock that was hours ahead, commits go on from there: none was completed after it was seen.
        "completed_at": min(lake_commit.completed_at, now),
        "operation": lake_commit.operation.lower(),
        "is_part_of_load": lake_commit.is_part_of_load,
        "source_committed_upto": _parse_instant(lake_commit.run.get("source_committed_upto")),
        "schema_version": lake_commit.schema_version,
        **lake_commit.run.get("counts", {}),
        **lake_commit.written._asdict(),
    }
    with transaction.atomic():
        commit, is_new = Commit.objects.get_or_create(copy=copy, instant=lake_commit.instant, defaults=facts)
        if not is_new:
            return None
        feed = copy.dataset.feed_or_none
        if feed is not None and feed.options.get("index") == HBASE:
            note_commit(copy, operation=commit.operation, inserts=commit.inserts, deletes=commit.deletes)
        if is_of_load:
            load_parts.forget_parts(commit, lake_commit)
        if is_of_load or hours.NOTED & lake_commit.run.keys():
            hours.note_commit(commit, lake_commit, now=now)
        own_rows = merge_into_rows(commit, touches.now) if (is_merged := _is_merged(commit)) else touches.now
        TouchedPartition.objects.bulk_create(
            TouchedPartition(
                commit=commit,
                copy=copy,
                start=over.start,
                end=over.end,
                rows=sum(change),
                inserts=change.inserts,
                deletes=change.deletes,
                merged_since=commit.completed_at if is_merged else None,
            )
            for over, change in own_rows.items()
        )
        read_everything = not touches.parts and _has_read_everything(lake_commit)
        _report_misplaced_rows(copy, lake_commit, read_everything=read_everything, now=now)
        _raise_findings(copy, commit, lake_commit, list(touches.now), now)
    return commit


def _is_merged(commit: Commit) -> bool:
    """Batches of a follow run share rows, but what takes data away is seen in rows of its own."""
    return commit.run is not None and commit.run.kind == JobKind.FOLLOW and not commit.deletes


def touched_partitions(lake_commit: LakeCommit, dataset: Dataset) -> dict[Interval, PartitionChange]:
    """The changes by partition; a name that is no partition of the dataset's grain may be anywhere, so it touches everything."""
    touched: dict[Interval, PartitionChange] = {}
    for name, change in lake_commit.partitions.items():
        over = _partition_interval(name, dataset)
        touched[over] = PartitionChange(*map(sum, zip(touched.get(over, PartitionChange()), change, strict=True)))
    return touched


def _partition_interval(name: str, dataset: Dataset) -> Interval:
    try:
        return parse_partition_name(name, dataset.partition_grain, dataset.zone)
    except ValueError:
        return EVERYTHING


def _raise_findings(
    copy: DatasetCopy, commit: Commit, lake_commit: LakeCommit, touched: list[Interval], now: datetime
) -> None:
    """Are all rows that were read accounted for, and did the schema fit? Known for our own commits only."""
    if not lake_commit.run:
        return
    over = (
        Interval(min(interval.start for interval in touched), max(interval.end for interval in touched))
        if touched
        else EVERYTHING
    )
    at = {"commit": commit.instant}
    problem = accounting_error(commit)
    if problem:
        findings.raise_finding(
            copy, findings.ROWS_UNACCOUNTED, over, f"Commit {commit.instant}: {problem}.", at, now=now
        )
    if skipped := lake_commit.run.get("log_move", {}).get("skipped"):
        note_skipped(copy, skipped, commit.instant, now=now)
    if corrected := lake_commit.run.get("corrected_entries"):
        note_corrected(copy, corrected, commit.instant, now=now)
    _judge_cursors(copy, lake_commit.run, at, now)
    _judge_index_limitation(copy, lake_commit.run.get("index_limitation"), at, now)
    _judge_schema(copy, lake_commit, at, now)


def _judge_schema(copy: DatasetCopy, lake_commit: LakeCommit, at: dict[str, str], now: datetime) -> None:
    """Rows go on to be loaded, whatever does not fit."""
    schema = lake_commit.run.get("schema", {})
    conflicts, refused = schema.get("conflicts", []), schema.get("refused", "")
    if conflicts or refused:
        texts = [f"`{name}` is {stored} here and {incoming} in the source" for name, stored, incoming in conflicts]
        message = "; ".join(texts)
        if lake_commit.schema_version is not None:
            message = " ".join(filter(None, (f"{message}." if texts else "", refused, _REMEDY)))
        columns = at | {"columns": conflicts}
        findings.raise_finding(copy, findings.SCHEMA_INCOMPATIBLE, EVERYTHING, message, columns, now=now)
    elif "conflicts" in schema:
        findings.clear_findings(copy, findings.SCHEMA_INCOMPATIBLE, now=now)


def _judge_index_limitation(copy: DatasetCopy, limitation: str | None, at: dict[str, str], now: datetime) -> None:
    """Rows are loaded all the same, by a slower way."""
    if limitation:
        message = f"{limitation} Until then the whole table is read for each batch."
        findings.raise_finding(copy, findings.INDEX_LIMITED, EVERYTHING, message, at, now=now)
    elif limitation is not None:
        findings.clear_findings(copy, findings.INDEX_LIMITED, now=now)


def _judge_cursors(copy: DatasetCopy, run: dict[str, Any], at: dict[str, str], now: datetime) -> None:
    """Rows whose cursor is NaN, infinite or no time were loaded, but a change of theirs is found only by chance."""
    cursors = run.get("unusable_cursors") or {"rows": None}
    if cursors["rows"]:
        values = ", ".join(map(str, cursors["sample"]))
        message = (
            f"{cursors['rows']} rows have a value in the cursor column `{cursors['column']}` that has no place in its order ({values}). "
            "They are loaded, but later changes to them may be missed. Correct the values in the source."
        )
        findings.raise_finding(copy, findings.CURSOR_UNUSABLE, EVERYTHING, message, at | cursors, now=now)
    elif cursors["rows"] == 0 and run.get("kind") in _FULL_LOOKS:
        findings.clear_findings(copy, findings.CURSOR_UNUSABLE, now=now)


def _report_misplaced_rows(copy: DatasetCopy, lake_commit: LakeCommit, *, read_everything: bool, now: datetime) -> None:
    """A batch of ours says which values were no partition. Only one that read the whole source knows that there are no others. Where others put their rows is for them to say."""
    grain, zone = copy.layout.partition_grain, copy.layout.zone
    if grain is Grain.NONE or not copy.uri:
        return
    misplaced, totals = lake_commit.run.get("misplaced"), lake_commit.run.get("misplaced_totals")
    ahead = _rows_ahead(copy, after=partition_at(now, grain, zone).end)
    kinds = (findings.PARTITION_UNREADABLE, findings.PARTITION_AHEAD)
    if misplaced or ahead or Finding.objects.filter(copy=copy, kind__in=kinds, cleared_at=None).exists():
        if misplaced is not None and read_everything:
            report_unreadable_values(copy, misplaced, totals, now=now)
        elif misplaced:
            report_more_unreadable_values(copy, misplaced, totals, now=now)
        report_rows_ahead(copy, ahead, now=now)


def _has_read_everything(lake_commit: LakeCommit) -> bool:
    """A first load in one commit or its replacement, or one of the loads of a source without a cursor, which leave a digest of all rows."""
    kind = lake_commit.run.get("kind")
    has_read = bool(lake_commit.run.get("counts", {}).get("read"))
    if kind == JobKind.BOOTSTRAP:
        return not lake_commit.is_part_of_load
    return bool(kind == JobKind.INCREMENTAL and has_read and lake_commit.has_digest_of_source)


def _rows_ahead(copy: DatasetCopy, *, after: datetime) -> dict[Interval, int | None]:
    """The partitions after a time that still hold rows, and how many (None: they were there before the first commit that is
    known). What a commit replaced does not count any more."""
    touched = TouchedPartition.objects.filter(copy=copy, start__gt=after, end__lt=FOREVER)
    replaced = touched.filter(start=OuterRef("start"), commit__operation__in=REPLACING_OPERATIONS)
    replaced_at = replaced.order_by("-commit__completed_at").values("commit__completed_at")[:1]
    present = touched.filter(commit__completed_at__gte=Coalesce(Subquery(replaced_at), Value(BEGINNING)))
    counts = present.values("start", "end").annotate(
        changed=Sum("rows"), inserted=Sum("inserts"), deleted=Sum("deletes")
    )
    still_there = counts.filter(Q(deleted=0) | Q(inserted__gt=F("deleted")), changed__gt=0)
    rows = still_there.order_by("start").values_list("start", "end", "inserted", "deleted")[: MAX_NAMED_VALUES + 1]
    return {Interval(start, end): inserted - deleted or None for start, end, inserted, deleted in rows}


def accounting_error(commit: Commit) -> str:
    """What is wrong with the sum of a commit; nothing where it holds or is not known."""
    parts = [commit.applied, commit.superseded, commit.redelivered, commit.errors]
    if commit.read is None or commit.applied is None:
        return ""
    accounted = sum(part or 0 for part in parts)
    if commit.read != accounted:
        return f"{commit.read} rows were read, but {accounted} are accounted for"
    written = commit.inserts + commit.updates + commit.deletes
    return f"{commit.applied} rows were applied, but {written} keys written" if written > commit.applied else ""


def _run_of(lake_commit: LakeCommit, copy: DatasetCopy) -> JobRun | None:
    try:
        # The id of a batch of a follow run begins with the key of the run.
        key = UUID(run_of_commit(str(lake_commit.run.get("run_id", "")))[:_KEY_LENGTH])
    except ValueError:
        return None
    return JobRun.objects.filter(key=key, copy=copy).first()


def _parse_instant(text: Any) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).astimezone(UTC)
