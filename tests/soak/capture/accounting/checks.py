"""What must hold when nobody writes any more and nothing is killed: the lake has the rows of the source, and each event is accounted for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import duckdb
from django.db.models import QuerySet

from ingestion.models import Capture, Commit, JobKind, JobRun, JobState, TapServer
from ingestion.positions.places import place_of_copy
from ingestion.spark.tables.timeline import Timeline
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.errors import Busy, Refused
from lakehub.kernel.lake_names import OWN_PREFIXES
from tests.soak.capture.accounting.accounts import (
    changelog_is_the_binlog,
    changelog_is_the_cells,
    changelog_is_the_topic,
    history_is_the_changelog,
)
from tests.soak.capture.accounting.error_table import error_table_is_the_log
from tests.soak.capture.alterations import LostColumn
from tests.soak.capture.cells import CELL_KEY, CELLS, cells_of, merged
from tests.soak.capture.misfits import MISFIT_TABLE, publish_again
from tests.soak.capture.stand import CaptureStand
from tests.soak.capture.tables import TABLES, Table, comparable
from tests.soak.capture.topic import TOPIC, TOPIC_KEY
from tests.soak.checks import lake_files, unbalanced

Rows = Mapping[tuple[Any, ...], Mapping[str, Any]]
"""By key, as they must be in the lake."""
_SHOWN = 3


def what_is_left(standing: CaptureStand) -> Iterator[str]:
    """Before the checks say anything."""
    if not standing.instance.is_up():
        yield "the instance is not up"
        return
    newest = standing.source.newest()
    for server in _servers_behind(newest):
        yield f"the tap is at {server.position}, and the server at {newest} {server.error}"
    for run in JobRun.objects.filter(kind=JobKind.BOOTSTRAP).exclude(
        state__in=(JobState.SUCCEEDED, JobState.CANCELLED)
    ):
        yield f"{run}: {run.error}"
    for table in TABLES:
        problem = _unread(table.name) or _rejected(table) or difference(standing, table)
        if problem:
            yield problem
    for name, key, rows in _guests(standing):
        problem = _unread(name) or difference_of(name, (key,), rows(), {})
        if problem:
            yield problem


def _guests(standing: CaptureStand) -> Iterator[tuple[str, str, Callable[[], Rows]]]:
    """What is captured beside the tables, with its key and its rows."""
    yield CELLS, CELL_KEY, lambda: merged(cells_of(standing.source))
    if standing.topic is not None:
        yield TOPIC, TOPIC_KEY, standing.topic.rows


def _unread(table: str) -> str:
    """Messages that change nothing any more are to be read as well."""
    try:
        place = place_of_copy(DatasetCopy.objects.get(dataset__name=table))
    except (Refused, Busy) as problem:
        return f"{table}: {problem}"
    return "" if place.oldest_at is None else f"{table}: {place.waiting} messages wait"


def _rejected(table: Table) -> str:
    """Once all is read, what was put aside is published again."""
    return publish_again() if table is MISFIT_TABLE else ""


def is_all_captured(standing: CaptureStand) -> bool:
    return not _servers_behind(standing.accounts.newest).exists()


def _servers_behind(newest: str) -> QuerySet[TapServer]:
    """That have a binlog."""
    return TapServer.objects.exclude(position=newest).exclude(address__startswith="kafka:")


def difference(standing: CaptureStand, table: Table) -> str:
    """Of lake and source; empty: none."""
    lost = standing.alterations.lost_of(table)
    return difference_of(table.name, table.key, standing.source.rows(table), lost)


def difference_of(name: str, key: Sequence[str], in_source: Rows, lost: Mapping[str, LostColumn]) -> str:
    in_lake = lake_rows(DatasetCopy.objects.get(dataset__name=name).uri)
    keys = [tuple(row[column] for column in key) for row in in_lake]
    if len(set(keys)) < len(keys):
        return f"{name}: the lake has {len(keys) - len(set(keys))} keys twice"
    wrong = [key for key, row in zip(keys, in_lake, strict=True) if not _is_as(in_source.get(key), key, row, lost)]
    lacking = in_source.keys() - set(keys)
    if not wrong and not lacking:
        return ""
    shown = [(key, in_source.get(key)) for key in [*wrong, *lacking][:_SHOWN]]
    return f"{name}: {len(wrong)} rows of the lake are others, {len(lacking)} lack; in the source {shown}"


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
    yield from unbalanced(Commit.objects.exclude(read=None), may_reject={MISFIT_TABLE.name})


def captures_go_on(_standing: CaptureStand) -> Iterator[str]:
    for capture in Capture.objects.all():
        if not capture.is_captured:
            yield f"{capture} is not captured: {capture.stopped_why}"


def each_change_is_in_the_log_once(standing: CaptureStand) -> Iterator[str]:
    yield from changelog_is_the_binlog(standing.accounts, standing.folder)


def each_cell_is_in_the_log_once(standing: CaptureStand) -> Iterator[str]:
    yield from changelog_is_the_cells(standing.accounts, cells_of(standing.source))


def each_message_is_in_the_log_once(standing: CaptureStand) -> Iterator[str]:
    if standing.topic is not None:
        yield from changelog_is_the_topic(standing.accounts, standing.topic.changes(), standing.folder)


def each_misfit_is_in_the_error_table_once(_standing: CaptureStand) -> Iterator[str]:
    yield from error_table_is_the_log(MISFIT_TABLE.name)


def each_version_is_in_the_history_once(standing: CaptureStand) -> Iterator[str]:
    yield from history_is_the_changelog(standing.folder)


CHECKS = (
    sums_hold,
    captures_go_on,
    each_change_is_in_the_log_once,
    each_cell_is_in_the_log_once,
    each_message_is_in_the_log_once,
    each_version_is_in_the_history_once,
    each_misfit_is_in_the_error_table_once,
)
