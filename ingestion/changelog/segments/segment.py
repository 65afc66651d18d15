"""One segment: an Avro file of messages one after the other, named by the offset of the first of them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastavro import block_reader, parse_schema, writer

from ingestion.changelog import ChangelogError, Logged, Outgoing

PARTITION = "0"
"""The only one of a topic."""
_SUFFIX = ".avro"
_WHOLE_BLOCK = 2**31
"""Bytes at which fastavro begins another block: a commit is one."""
_SCHEMA = parse_schema(
    {
        "type": "record",
        "name": "Message",
        "namespace": "lakehub.changelog",
        "fields": [
            {"name": "key", "type": "bytes"},
            {"name": "value", "type": ["null", "bytes"]},
            {"name": "logged_at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        ],
    }
)


def topic_folder(root: Path, topic: str) -> Path:
    """Whatever the topic is called, it is a folder of the log. `Marks.read` knows them by the beginning of their names."""
    return root / f"topic-{quote(topic, safe='')}"


def segment_path(folder: Path, first: int) -> Path:
    return folder / f"{first:020d}{_SUFFIX}"


def segments_of(folder: Path) -> list[int]:
    """Their first offsets, in order."""
    return sorted(int(path.stem) for path in folder.glob(f"*{_SUFFIX}"))


def append(path: Path, committed_bytes: int, messages: Sequence[Outgoing], now: datetime) -> int:
    """Behind the committed bytes; how many there are then. On disk when it returns."""
    with path.open("a+b") as file:
        if file.seek(0, os.SEEK_END) < committed_bytes:
            raise ChangelogError(
                f"{path} has {file.tell():,} bytes, and {committed_bytes:,} were committed: the file was changed or lost its end. "
                "Restore it from a backup of the folder, or remove the folder of the topic and bootstrap its dataset again."
            )
        file.truncate(committed_bytes)
        file.seek(committed_bytes)
        rows = ({"key": message.key, "value": message.value, "logged_at": now} for message in messages)
        writer(file, _SCHEMA, rows, sync_interval=_WHOLE_BLOCK)
        file.flush()
        os.fsync(file.fileno())
        return file.seek(0, os.SEEK_END)


def read(path: Path, first: int, start: int, committed_bytes: int | None) -> Iterator[Logged]:
    """From the offset `start` on. `committed_bytes`: of the newest segment; None: all of the file. Raises FileNotFoundError."""
    offset = first
    for block in _blocks(path.read_bytes() if committed_bytes is None else _beginning(path, committed_bytes)):
        if offset + block.num_records > start:
            for number, record in enumerate(block, offset):
                if number >= start:
                    yield _logged(number, record)
        offset += block.num_records


def _blocks(content: bytes) -> Iterator[Any]:
    return iter(block_reader(BytesIO(content))) if content else iter(())


def _beginning(path: Path, length: int) -> bytes:
    with path.open("rb") as file:
        return file.read(length)


def _logged(offset: int, record: dict[str, Any]) -> Logged:
    logged_at: datetime = record["logged_at"]
    return Logged(PARTITION, offset, record["key"], record["value"], logged_at.astimezone(UTC))
