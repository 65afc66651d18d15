"""Files in a folder: CSV, JSON lines, Parquet, Avro, by the ending of their names. The position says which files were read.

A file that is new, or has another size or time than when it was read, is read whole. Writers should write under a name that starts with `.` or `_`, and rename.
A file that is gone stays in the position for a while, with the time when that was noticed: where a folder was not mounted, or a file was put aside, it comes
back as one that was read. Later its name is dropped, as else a position would have each file that there ever was, in each commit.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatch
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from ingestion.domain.batch_limits import UNLIMITED, BatchLimits, BatchMeter
from ingestion.domain.checkpoint import Position
from ingestion.domain.schema import Schema, SchemaColumn, evolve_schema
from ingestion.sources import Chunk, EventBatch, SourceConfig, SourceError, SourceReading
from ingestion.sources.files.formats import FORMATS, Format
from lakehub.kernel.addresses import redacted_url
from lakehub.kernel.suggest import did_you_mean

GONE_KEPT = timedelta(days=30)
"""A file that comes back after a longer time is read as a new one: its rows are known, and a dataset without a reference key takes them again."""
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


class FilesSource:
    def __init__(self, config: SourceConfig, clock: Callable[[], float] = time.monotonic) -> None:
        self._config = config
        self._clock = clock
        self._filesystem, self._folder = _open_folder(config.url)

    def schema(self) -> Schema:
        """All columns of all files that match; a type that differs from file to file is the first one's, or wider."""
        merged = Schema(())
        for name in self._require_files():
            merged = self.with_columns_of(merged, name)
        return merged

    def snapshot(
        self,
        *,
        upto: datetime | None = None,
        only: Mapping[str, Sequence[str]] | None = None,
        after: Position | None = None,
        limits: BatchLimits = UNLIMITED,
    ) -> SourceReading:
        schema = self.schema()
        schema.require(only or (), f"`{self._config.object}`")
        files = self._require_files()
        reading = self._reading(_FileReading(self, files, schema, {}, BatchMeter(UNLIMITED, self._clock), only or {}))
        return reading if only else replace(reading, total=lambda: self._count_rows(files))

    def changes(
        self, position: Position, *, upto: datetime | None = None, limits: BatchLimits = UNLIMITED
    ) -> SourceReading:
        """Files that were read before are not opened again: the position holds the columns of them all."""
        present = self._matching_files()
        gone = _gone_since(position, present, upto)
        known_files = {name: mark for name, mark in position["files"].items() if name in present or name in gone}
        files = {name: mark for name, mark in present.items() if known_files.get(name) != mark}
        types = position.get("schema")
        schema = self.schema() if types is None and files else Schema.of(types or {})
        if limits.is_unlimited:
            for name in files:
                schema = self.with_columns_of(schema, name)
        return self._reading(_FileReading(self, files, schema, known_files, BatchMeter(limits, self._clock), {}, gone))

    def _reading(self, reading: _FileReading) -> SourceReading:
        return SourceReading(reading.batches(), reading.position, has_more=lambda: reading.has_more)

    def _count_rows(self, files: Iterable[str]) -> int | None:
        """Of Parquet, whose files say it; None where others are among them."""
        rows = 0
        for name in files:
            if PurePosixPath(name).suffix.lower() != ".parquet":
                return None
            with self._opened(name) as file:
                rows += pq.read_metadata(file).num_rows
        return rows

    def with_columns_of(self, schema: Schema, name: str) -> Schema:
        with self._opened(name) as file:
            merged = evolve_schema(schema, _format(name).schema(file)).target
        added = [column for column in _folder_values(name) if column not in merged.names]
        return Schema((*merged, *(SchemaColumn(column, "string") for column in added)))

    def chunks_of(self, name: str) -> Iterator[Chunk]:
        with self._opened(name) as file:
            for chunk in _format(name).chunks(file, self._config.chunk_rows):
                yield _with_folder_values(chunk, name)

    def tell_rows(self, rows: int) -> None:
        """Out of the block whose errors are the file's: what the reader raises is not."""
        self._config.on_rows_read(rows)

    @contextmanager
    def _opened(self, name: str) -> Iterator[Any]:
        with self._filesystem.open_input_file(f"{self._folder}/{name}") as file, _file_errors(name):
            yield file

    def _require_files(self) -> dict[str, list[int]]:
        files = self._matching_files()
        if not files:
            raise SourceError(
                f"No file below {self._folder} matches `{self._config.object}`.{did_you_mean(self._config.object, self._all_files())}"
            )
        return files

    def _matching_files(self) -> dict[str, list[int]]:
        """Name below the folder -> [size, time in microseconds]."""
        files = {name: info for name, info in self._all_files().items() if fnmatch(name, self._config.object)}
        is_local = isinstance(self._filesystem, fs.LocalFileSystem)
        names = _without_links_out(self._folder, files) if is_local else files
        return {name: [files[name].size, files[name].mtime_ns // 1000] for name in names}

    def _all_files(self) -> dict[str, Any]:
        infos = self._filesystem.get_file_info(fs.FileSelector(self._folder, recursive=True))
        below = {info.path[len(self._folder) + 1 :]: info for info in infos if info.type == fs.FileType.File}
        return {
            name: info
            for name, info in below.items()
            if not any(part.startswith((".", "_")) for part in PurePosixPath(name).parts)
        }


@dataclass
class _FileReading:
    """Files from the oldest on. It ends after the file that reaches a limit, and before one that brings columns the batch lacks."""

    source: FilesSource
    files: Mapping[str, list[int]]
    schema: Schema
    known_files: Mapping[str, list[int]]
    meter: BatchMeter
    only: Mapping[str, Sequence[str]]
    gone: Mapping[str, str] = field(default_factory=dict)
    read_files: dict[str, list[int]] = field(default_factory=dict)
    has_more: bool = False

    def batches(self) -> Iterator[EventBatch]:
        for name in sorted(self.files, key=lambda file_name: (self.files[file_name][1], file_name)):
            if self._ends_before(name):
                self.has_more = True
                return
            for chunk in self.source.chunks_of(name):
                self.source.tell_rows(chunk.rows + len(chunk.unreadable))
                self.meter.add(chunk.rows, 0 if self.meter.limits.bytes is None else chunk.estimated_bytes)
                yield EventBatch.of(_filter_rows(chunk, self.only), self.schema)
            self.read_files[name] = self.files[name]

    def _ends_before(self, name: str) -> bool:
        if self.meter.limits.is_unlimited:
            return False
        if self.read_files and self.meter.is_full():
            return True
        schema = self.source.with_columns_of(self.schema, name)
        if self.read_files and schema != self.schema:
            return True
        self.schema = schema
        return False

    def position(self) -> Position:
        position = {"files": {**self.known_files, **self.read_files}, "schema": self.schema.types}
        return {**position, **({"gone": self.gone} if self.gone else {})}


def _gone_since(position: Position, present: Mapping[str, list[int]], upto: datetime | None) -> dict[str, str]:
    """Of the files that were read and are not there: since when (ISO 8601 in UTC), but for those that have been gone for too long."""
    noticed, gone = position.get("gone", {}), [name for name in position["files"] if name not in present]
    if upto is None:
        return {name: noticed.get(name, "") for name in gone}
    since = {name: noticed.get(name) or upto.astimezone(UTC).isoformat() for name in gone}
    return {name: at for name, at in since.items() if upto - datetime.fromisoformat(at) < GONE_KEPT}


class _file_errors:  # noqa: N801  reads as a phrase: `with _file_errors(name)`
    """A file that is not what its name says, in words that name it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        if isinstance(problem, pa.ArrowException | OSError | ValueError | EOFError) and not isinstance(
            problem, SourceError
        ):
            raise SourceError(
                f"The file {self._name} cannot be read: {problem}. Is it whole, and what its ending says?"
            ) from problem


def _open_folder(url: str) -> tuple[fs.FileSystem, str]:
    uri = url if urlsplit(url).scheme else Path(url).absolute().as_uri()
    try:
        filesystem, path = fs.FileSystem.from_uri(uri)
        there = filesystem.get_file_info(path).type
    except (pa.ArrowInvalid, OSError) as problem:
        raise SourceError(f"The folder {redacted_url(url)} cannot be reached: {type(problem).__name__}.") from None
    if there != fs.FileType.Directory:
        raise SourceError(f"There is no folder {path}. Check the connection's URL.")
    return filesystem, path.rstrip("/")


def _without_links_out(folder: str, names: Iterable[str]) -> Iterator[str]:
    """A link may lead to what the operator lets nobody read: who may put files into a folder has no others loaded by it."""
    root = os.path.join(os.path.realpath(f"{folder}/"), "")
    real_folder = cache(os.path.realpath)
    for name in names:
        path = f"{folder}/{name}"
        real_path = os.path.realpath(path) if os.path.islink(path) else f"{real_folder(os.path.dirname(path))}/"
        if real_path.startswith(root):
            yield name


def _folder_values(name: str) -> dict[str, str | None]:
    """What the folders of a file say of all its rows, as `dt=2026-11-16/`."""
    parts = (part.partition("=") for part in PurePosixPath(name).parent.parts)
    return {column: None if text == _NO_VALUE else unquote(text) for column, equals, text in parts if equals and column}


def _with_folder_values(chunk: Chunk, name: str) -> Chunk:
    """A column that the rows have is as they have it."""
    added = {
        column: [text] * chunk.rows for column, text in _folder_values(name).items() if column not in chunk.columns
    }
    return replace(chunk, columns={**chunk.columns, **added}) if added else chunk


def _format(name: str) -> Format:
    ending = PurePosixPath(name).suffix.lower()
    if ending not in FORMATS:
        raise SourceError(f"The file {name} has the unknown ending `{ending}`.{did_you_mean(ending, FORMATS)}")
    return FORMATS[ending]


def _filter_rows(chunk: Chunk, only: Mapping[str, Sequence[str]]) -> Chunk:
    if not only:
        return chunk
    kept_rows = [
        row
        for row in range(chunk.rows)
        if all(_as_text(chunk.columns[name][row]) in values for name, values in only.items())
    ]
    return Chunk({name: _values_at(kept_rows, values) for name, values in chunk.columns.items()})


def _values_at(rows: Sequence[int], values: Sequence[Any]) -> Sequence[Any]:
    """Arrow's stay Arrow's, with their type."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        taken: Sequence[Any] = values.take(pa.array(rows, pa.int64()))
        return taken
    return [values[row] for row in rows]


def _as_text(value: Any) -> str:
    plain = value.as_py() if isinstance(value, pa.Scalar) else value
    return "" if plain is None else str(plain)
