"""Is each row that does not fit in the error table once, by its place in the log, and no other? Is each that was put aside published again?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import duckdb
from django.db.models import Sum

from ingestion.changelog import Logged
from ingestion.heatpipe.decoder import is_mended
from ingestion.heatpipe.reading import ERRORS_SUFFIX, place_in_log
from ingestion.models import Commit
from ingestion.runs.job_specs import error_table_uri
from ingestion.spark.tables.timeline import Timeline
from lakehub.catalog.models import DatasetCopy
from tests.soak.capture.accounting.accounts import changes_put_aside, keyed_change, offsets_of_load, topic_of
from tests.soak.capture.accounting.binlog import Change
from tests.soak.checks import lake_files

_SHOWN = 5


class _Rejected(NamedTuple):
    """`place`: in the log. `is_resolved`: it was published again."""

    place: str
    is_resolved: bool


def error_table_is_the_log(table: str) -> Iterator[str]:
    """Of a table that was loaded once, when none of its rows was rejected."""
    copy = DatasetCopy.objects.select_related("data_center", "dataset").get(dataset__name=table)
    topic, decoder = topic_of(copy.dataset)
    begun, errors = offsets_of_load(copy), topic.topic + ERRORS_SUFFIX
    messages = [*topic.reader.read(topic.topic, begun[topic.topic])]
    put_aside = [*topic.reader.read(errors, begun.get(errors, {}))]
    mended, empty = set[Change](), list[Logged]()
    for message in messages:
        value = message.value or b""
        change = keyed_change(decoder, value)[1]
        if is_mended(value, topic.schema_of):
            mended.add(change._replace(is_put_aside=True))
        elif "" in change.key:
            empty.append(message)
    rows = Counter(_rows_of(copy))
    kept = Counter(row.place for row in rows.elements() if not row.is_resolved)
    expected = Counter([*_places(errors, put_aside), *_places(topic.topic, empty)])
    yield from _differences(f"the error table of {table}", expected, kept)
    resolved = {row.place for row in rows if row.is_resolved}
    yield from _differences(f"what is resolved of {table}", Counter(_places(errors, put_aside)), Counter(resolved))
    wanted = {change for message in put_aside for change in changes_put_aside(message.value or b"", copy.dataset)}
    yield from _differences(f"what is published again of {table}", Counter(wanted), Counter(mended))
    counted = Commit.objects.filter(copy=copy).aggregate(rows=Sum("errors"))["rows"] or 0
    if counted != expected.total():
        yield f"the commits of {table} count {counted} errors, and the log has {expected.total()}"


def _places(topic: str, messages: Iterable[Logged]) -> Iterator[str]:
    return (place_in_log(topic, message.partition, message.offset) for message in messages)


def _rows_of(copy: DatasetCopy) -> Iterator[_Rejected]:
    """All that was ever appended, as the files say it."""
    uri = error_table_uri(copy)
    timeline = Timeline(uri)
    files = lake_files(uri) if timeline.exists and timeline.commits() else []
    if not files:
        return
    with duckdb.connect() as db:
        query = "SELECT source, resolved_at IS NOT NULL FROM read_parquet($files, hive_partitioning = false, union_by_name = true)"
        yield from (_Rejected(*row) for row in db.execute(query, {"files": files}).fetchall())


def _differences(where: str, made: Counter[Any], kept: Counter[Any]) -> Iterator[str]:
    for what, differing in (("lacks", made - kept), ("has too often, or has invented,", kept - made)):
        if differing:
            shown = "; ".join(map(str, sorted(differing)[:_SHOWN]))
            yield f"{where} {what} {differing.total()} rows, such as {shown}"
