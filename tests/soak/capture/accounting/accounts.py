"""Is each change of the server's binlog in the changelog, and in the history, exactly once? One that was lost need not show in the lake: its row may have changed again."""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import duckdb

from ingestion.captures.topics import topic_to_read
from ingestion.changelog import ChangelogReader
from ingestion.domain.merging.events import Operation
from ingestion.heatpipe.decoder import Decoder, is_mended
from ingestion.heatpipe.event_topic import EventTopic
from ingestion.heatpipe.reading import ERRORS_SUFFIX
from ingestion.heatpipe.unencoded_row import UnencodedRow
from ingestion.models import Capture
from ingestion.runs.job_specs import history_table_uri
from ingestion.spark.tables.timeline import Timeline
from lakehub.catalog.models import Dataset, DatasetCopy
from tests.soak.capture.accounting.binlog import Accounts, Change, Changes, Gap, Key, sequence_of
from tests.soak.capture.accounting.differences import differences, topic_problems
from tests.soak.capture.cells import CELLS, Cell, cell_problems
from tests.soak.capture.tables import TABLES, TABLES_WITH_HISTORY
from tests.soak.capture.topic import TOPIC
from tests.soak.checks import lake_files

_REFERENCE_KEY = struct.Struct(">HQQ")
"""Epoch, number of the transaction, and place in it."""


def changelog_is_the_binlog(accounts: Accounts, folder: Path) -> Iterator[str]:
    """Wherever the tap was killed. What differs is written down as a whole in the folder."""
    names = [table.name for table in TABLES]
    for capture in Capture.objects.filter(feed__dataset__name__in=names).select_related("feed__dataset"):
        table, began = capture.feed.dataset.name, sequence_of(capture.captured_from)
        gap = accounts.gaps.pop(table, Gap(began, began))
        made = Changes(
            {
                change: times
                for change, times in accounts.unchecked.pop(table, {}).items()
                if change.sequence > began or gap.began < change.sequence <= gap.upto
            }
        )
        yield from differences(f"the changelog of {table}", made, _logged(capture, accounts), folder)


def changelog_is_the_cells(accounts: Accounts, there: Collection[Cell]) -> Iterator[str]:
    """Those that were there when it was asked first need not be in the changelog, but in the first load."""
    topic, decoder = topic_of(Dataset.objects.get(name=CELLS))
    messages = Counter(message.value or b"" for message in topic.reader.read(topic.topic, {}))
    logged = []
    for message in (messages - accounts.repeated[topic.topic]).elements():
        decoded = decoder.decode(message, (0,))
        key, reference = decoded.event.row_key, decoded.event.reference_key
        assert isinstance(reference, int)
        logged.append(Cell(str(key[0]), decoded.source_column, reference))
    if not accounts.cells:
        accounts.cells |= set(there)
    yield from cell_problems(logged, there, set(there) - accounts.cells)


def changelog_is_the_topic(accounts: Accounts, made: Changes, folder: Path) -> Iterator[str]:
    """Since the topic was read from its beginning last."""
    capture = Capture.objects.select_related("feed__dataset").get(feed__dataset__name=TOPIC)
    topic, decoder = topic_of(capture.feed.dataset)
    messages = Counter(
        message.value or b"" for message in topic.reader.read(topic.topic, capture.changelog_from[topic.topic])
    )
    yield from topic_problems(
        made, _changes(decoder, messages), _changes(decoder, accounts.repeated[topic.topic]), folder
    )


def _changes(decoder: Decoder, messages: Counter[bytes]) -> Changes:
    changes = Changes()
    for message, times in messages.items():
        changes[keyed_change(decoder, message)[1]] += times
    return changes


def history_is_the_changelog(folder: Path) -> Iterator[str]:
    """From where the first load began: changes from before it are in its rows only. A message that comes again is the same version, and an empty key has none."""
    for copy in DatasetCopy.objects.filter(dataset__name__in=TABLES_WITH_HISTORY).select_related("dataset"):
        topic, decoder = topic_of(copy.dataset)
        read = topic.reader.read(topic.topic, offsets_of_load(copy)[topic.topic])
        messages = {message.value or b"" for message in read}
        keyed = {keyed_change(decoder, message) for message in messages}
        made = Counter(change for _, change in keyed if "" not in change.key)
        yield from differences(f"the history of {copy.dataset.name}", made, _versions(copy), folder)


def offsets_of_load(copy: DatasetCopy) -> Mapping[str, Any]:
    """By topic, from where on its messages are changes of the table."""
    lake, dataset = Path(urlsplit(copy.data_center.lake_uri).path), copy.dataset.name
    begun = next(lake.glob(f".lakehub/raw/{dataset}/*/end.json")).with_name("beginning.json")
    offsets: Mapping[str, Any] = json.loads(begun.read_text())["log"]
    return offsets


def _logged(capture: Capture, accounts: Accounts) -> Changes:
    """Since it was asked last: events, and rows that the tap could not encode, without those that were mended."""
    dataset = capture.feed.dataset
    topic, decoder = topic_of(dataset)
    messages = _new_messages(topic.reader, topic.topic, accounts)
    counted = Changes()
    for message, times in (messages - accounts.repeated.pop(topic.topic, Counter())).items():
        if not is_mended(message, topic.schema_of):
            counted[keyed_change(decoder, message)[1]] += times
    for message in _new_messages(topic.reader, topic.topic + ERRORS_SUFFIX, accounts).elements():
        counted.update(changes_put_aside(message, dataset))
    return counted


def topic_of(dataset: Dataset) -> tuple[EventTopic, Decoder]:
    topic = topic_to_read(dataset, now=datetime.now(UTC))
    reference_type = int if dataset.name == CELLS else bytes
    return topic, Decoder(topic.topic, tuple(dataset.record_key), reference_type, topic.schema_of)


def keyed_change(decoder: Decoder, message: bytes) -> tuple[bytes, Change]:
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


def changes_put_aside(message: bytes, dataset: Dataset) -> Iterator[Change]:
    """A row that is a note of an event has come as that."""
    row = UnencodedRow.from_json(message)
    if row is None or row.is_nulled:
        return
    sequence = sequence_of(row.transaction)
    before, after = _key_of(row.before, dataset), _key_of(row.after, dataset)
    if before is not None and before != after:
        yield Change(sequence, before, is_deleted=True, is_put_aside=True)
    if after is not None:
        yield Change(sequence, after, is_deleted=False, is_put_aside=True)


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
