"""Is each change of the server's binlog in the changelog, and in the history, exactly once? One that was lost need not show in the lake: its row may have changed again."""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import duckdb

from ingestion.captures.topics import topic_to_read
from ingestion.changelog import ChangelogReader
from ingestion.domain.merging.events import Operation
from ingestion.heatpipe.decoder import Decoder
from ingestion.heatpipe.event_topic import EventTopic
from ingestion.heatpipe.reading import ERRORS_SUFFIX
from ingestion.heatpipe.unencoded_row import UnencodedRow
from ingestion.models import Capture
from ingestion.runs.job_specs import history_table_uri
from ingestion.spark.tables.timeline import Timeline
from lakehub.catalog.models import Dataset, DatasetCopy
from tests.soak.capture.binlog import Accounts, Change, Changes, Key
from tests.soak.capture.tables import TABLES_WITH_HISTORY
from tests.soak.checks import lake_files

_REFERENCE_KEY = struct.Struct(">HQQ")
"""Epoch, number of the transaction, and place in it."""
_SHOWN = 20


def changelog_is_the_binlog(accounts: Accounts, folder: Path) -> Iterator[str]:
    """Wherever the tap was killed. What differs is written down as a whole in the folder."""
    for capture in Capture.objects.select_related("feed__dataset"):
        table, began = capture.feed.dataset.name, int(capture.captured_from.rpartition("-")[2] or 0)
        made = Counter(
            {change: times for change, times in accounts.unchecked.pop(table, {}).items() if change.sequence > began}
        )
        yield from _differences(f"the changelog of {table}", made, _logged(capture, accounts), folder)


def history_is_the_changelog(folder: Path) -> Iterator[str]:
    """From where the first load began: changes from before it are in its rows only. A message that comes again is the same version."""
    for copy in DatasetCopy.objects.filter(dataset__name__in=TABLES_WITH_HISTORY).select_related("dataset"):
        topic, decoder = _topic_of(copy.dataset)
        begun = next(_lake_of(copy).glob(f".lakehub/raw/{copy.dataset.name}/*/end.json")).with_name("beginning.json")
        offsets = json.loads(begun.read_text())["log"][topic.topic]
        messages = {message.value or b"" for message in topic.reader.read(topic.topic, offsets)}
        made = Counter(change for _, change in {_keyed(decoder, message) for message in messages})
        yield from _differences(f"the history of {copy.dataset.name}", made, _versions(copy), folder)


def _lake_of(copy: DatasetCopy) -> Path:
    return Path(urlsplit(copy.data_center.lake_uri).path)


def _differences(where: str, made: Changes, kept: Changes, folder: Path) -> Iterator[str]:
    for what, changes in (("lacks", made - kept), ("has too often, or has invented,", kept - made)):
        if changes:
            named = [_name(change, times) for change, times in sorted(changes.items())]
            file = folder / f"{where} {what.split()[0]}.txt".replace(" ", "-")
            file.write_text("\n".join(named) + "\n")
            rest = f", and {len(named) - _SHOWN} more in {file}" if len(named) > _SHOWN else ""
            yield f"{where} {what} {changes.total()} changes: {'; '.join(named[:_SHOWN])}{rest}"


def _name(change: Change, times: int) -> str:
    what = "delete of" if change.is_deleted else "write of"
    return f"{what} {'/'.join(change.key)} in transaction {change.sequence}" + (
        f" ({times} times)" if times > 1 else ""
    )


def _logged(capture: Capture, accounts: Accounts) -> Changes:
    """Since it was asked last: events, and rows that the tap could not encode."""
    dataset = capture.feed.dataset
    topic, decoder = _topic_of(dataset)
    messages = _new_messages(topic.reader, topic.topic, accounts)
    counted = Changes()
    for message, times in (messages - accounts.repeated.pop(topic.topic, Counter())).items():
        counted[_keyed(decoder, message)[1]] += times
    for message in _new_messages(topic.reader, topic.topic + ERRORS_SUFFIX, accounts).elements():
        counted.update(_changes_of_rejected(message, dataset))
    return counted


def _topic_of(dataset: Dataset) -> tuple[EventTopic, Decoder]:
    topic = topic_to_read(dataset, now=datetime.now(UTC))
    return topic, Decoder(topic.topic, tuple(dataset.record_key), bytes, topic.schema_of)


def _keyed(decoder: Decoder, message: bytes) -> tuple[bytes, Change]:
    """With the reference key, which no two changes of a row have."""
    event = decoder.decode(message, (0,)).event
    assert isinstance(event.reference_key, bytes)
    return event.reference_key, _change(event.reference_key, event.row_key, event.operation is Operation.DELETE)


def _new_messages(reader: ChangelogReader, topic: str, accounts: Accounts) -> Counter[bytes]:
    messages, offsets = Counter[bytes](), accounts.read_upto[topic]
    for message in reader.read(topic, dict(offsets)):
        offsets[message.partition] = message.offset + 1
        messages[message.value or b""] += 1
    return messages


def _change(reference_key: bytes, row_key: tuple[Any, ...], is_deleted: bool) -> Change:
    _, sequence, _ = _REFERENCE_KEY.unpack(reference_key)
    return Change(sequence, tuple(map(str, row_key)), is_deleted)


def _changes_of_rejected(message: bytes, dataset: Dataset) -> Iterator[Change]:
    """A row that is a note of an event has come as that."""
    row = UnencodedRow.from_json(message)
    if row is None or row.is_nulled:
        return
    sequence = int(row.transaction.rpartition("-")[2])
    before, after = _key_of(row.before, dataset), _key_of(row.after, dataset)
    if before is not None and before != after:
        yield Change(sequence, before, is_deleted=True)
    if after is not None:
        yield Change(sequence, after, is_deleted=False)


def _key_of(row: Mapping[str, Any] | None, dataset: Dataset) -> Key | None:
    return None if row is None else tuple(str(row[name]) for name in dataset.record_key)


def _versions(copy: DatasetCopy) -> Changes:
    """Without a JVM and without Lakehub: what the files of the history say. A snapshot is no change."""
    uri = history_table_uri(copy)
    timeline = Timeline(uri)
    files = lake_files(uri) if timeline.exists and timeline.commits() else []
    if not files:
        return Changes()
    keys = ", ".join(f'"{name}"' for name in copy.dataset.record_key)
    with duckdb.connect() as db:
        rows = db.execute(
            f"SELECT _lakehub_reference_key, _lakehub_is_deleted, {keys} FROM read_parquet($files, union_by_name = true) WHERE NOT _lakehub_is_snapshot",
            {"files": files},
        ).fetchall()
    return Changes(_change(reference_key, tuple(key), is_deleted) for reference_key, is_deleted, *key in rows)
