"""What must hold when nobody writes any more and nothing is killed: the lake has the rows of the source, and each event is accounted for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import duckdb

from ingestion.models import Capture, Commit, JobKind, JobRun, JobState, TapServer
from ingestion.positions.places import place_of_copy
from ingestion.spark.tables.timeline import Timeline
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.errors import Busy, Refused
from lakehub.kernel.lake_names import OWN_PREFIXES
from tests.soak.capture.accounts import changelog_is_the_binlog, history_is_the_changelog
from tests.soak.capture.alterations import LostColumn
from tests.soak.capture.stand import CaptureStand
from tests.soak.capture.tables import TABLES, Table, comparable
from tests.soak.checks import lake_files, unbalanced

_SHOWN = 3


def what_is_left(standing: CaptureStand) -> Iterator[str]:
    """Before the checks say anything."""
    if not standing.instance.is_up():
        yield "the instance is not up"
        return
    newest = standing.source.newest()
    for server in TapServer.objects.exclude(position=newest):
        yield f"the tap is at {server.position}, and the server at {newest} {server.error}"
    for run in JobRun.objects.filter(kind=JobKind.BOOTSTRAP).exclude(
        state__in=(JobState.SUCCEEDED, JobState.CANCELLED)
    ):
        yield f"{run}: {run.error}"
    for table in TABLES:
        problem = difference(standing, table) or _unread(table)
        if problem:
            yield problem


def _unread(table: Table) -> str:
    """Messages that change nothing any more are to be read as well."""
    try:
        place = place_of_copy(DatasetCopy.objects.get(dataset__name=table.name))
    except (Refused, Busy) as problem:
        return f"{table.name}: {problem}"
    return "" if place.oldest_at is None else f"{table.name}: {place.waiting} messages wait"


def is_all_captured(standing: CaptureStand) -> bool:
    return not TapServer.objects.exclude(position=standing.accounts.newest).exists()


def difference(standing: CaptureStand, table: Table) -> str:
    """Of lake and source; empty: none."""
    copy = DatasetCopy.objects.get(dataset__name=table.name)
    in_source, in_lake = standing.source.rows(table), lake_rows(copy.uri)
    keys = [tuple(row[name] for name in table.key) for row in in_lake]
    if len(set(keys)) < len(keys):
        return f"{table.name}: the lake has {len(keys) - len(set(keys))} keys twice"
    lost = standing.alterations.lost_of(table)
    wrong = [key for key, row in zip(keys, in_lake, strict=True) if not _is_as(in_source.get(key), key, row, lost)]
    lacking = in_source.keys() - set(keys)
    if not wrong and not lacking:
        return ""
    shown = [(key, in_source.get(key)) for key in [*wrong, *lacking][:_SHOWN]]
    return f"{table.name}: {len(wrong)} rows of the lake are others, {len(lacking)} lack; in the source {shown}"


def _is_as(
    in_source: Mapping[str, Any] | None,
    key: tuple[Any, ...],
    row: Mapping[str, Any],
    lost: Mapping[str, LostColumn],
) -> bool:
    """A column that the lake does not have yet is null in all rows."""
    if in_source is None:
        return False
    text = tuple(map(str, key))
    return all(row.get(name) == value for name, value in in_source.items()) and all(
        lost[name].may_be(text, row[name]) if name in lost else row[name] is None
        for name in row.keys() - in_source.keys()
    )


def lake_rows(uri: str) -> list[dict[str, Any]]:
    """As the table format lists its files, without a JVM and without Lakehub."""
    timeline = Timeline(uri)
    files = lake_files(uri) if timeline.exists and timeline.commits() else []
    if not files:
        return []
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        result = db.execute(
            "SELECT * FROM read_parquet($files, hive_partitioning = false, union_by_name = true)", {"files": files}
        )
        names = [column[0] for column in result.description or ()]
        rows = result.fetchall()
    own = [place for place, name in enumerate(names) if not name.startswith(OWN_PREFIXES)]
    return [{names[place]: comparable(row[place]) for place in own} for row in rows]


def sums_hold(_standing: CaptureStand) -> Iterator[str]:
    """A commit that only brings columns has read nothing."""
    yield from unbalanced(Commit.objects.exclude(read=None))


def captures_go_on(_standing: CaptureStand) -> Iterator[str]:
    for capture in Capture.objects.all():
        if not capture.is_captured:
            yield f"{capture} is not captured: {capture.stopped_why}"


def each_change_is_in_the_log_once(standing: CaptureStand) -> Iterator[str]:
    yield from changelog_is_the_binlog(standing.accounts, standing.folder)


def each_version_is_in_the_history_once(standing: CaptureStand) -> Iterator[str]:
    yield from history_is_the_changelog(standing.folder)


CHECKS = (sums_hold, captures_go_on, each_change_is_in_the_log_once, each_version_is_in_the_history_once)
