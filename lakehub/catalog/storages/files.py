"""Files in a folder: CSV, JSON lines, Parquet (by DuckDB) and Avro. A table is a glob below the folder of the URL."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

from lakehub.catalog.metadata import (
    SAMPLE_ROWS,
    ColumnMetadata,
    Drawn,
    KeyEvidence,
    MetadataUnavailable,
    NewestValues,
    NoSuchTable,
    TableMetadata,
    duckdb_files,
)
from lakehub.catalog.metadata.avro_types import avro_column_type
from lakehub.catalog.metadata.damaged_files import explain_damage
from lakehub.catalog.metadata.special_files import inside_folder, without_special_files
from lakehub.catalog.metadata.table_locations import LocalTable
from lakehub.catalog.metadata.tables import Files
from lakehub.catalog.storages import LocalPath, Storage, local_path
from lakehub.kernel.avro_files import AvroFile, BadAvro

FILE_ENDINGS = (*duckdb_files.READ_FUNCTIONS, ".avro")
MAX_FILES = 10_000
"""A list of tables is made from this many files; one that is not listed can still be named."""


class FilesStorage(Storage):
    """`url` is a folder, `file:///data`; a table is a glob such as `flights/*.csv`."""

    url_example = "file:///data"
    empty_hint = (
        f"Put files with one of the endings {', '.join(FILE_ENDINGS)} into the folder, or give the URL of another."
    )
    table_hint = "or a pattern such as orders/*.parquet"

    def tables(self, limit: int) -> Sequence[str]:
        """One glob for each ending in each folder."""
        looked_at = islice(self._folder.glob("**/*"), MAX_FILES)
        files = (file for file in looked_at if file.suffix in FILE_ENDINGS)
        return sorted({str(file.relative_to(self._folder).parent / f"*{file.suffix}") for file in files})[:limit]

    def describe(self, table: str) -> TableMetadata:
        files, ending = self._files(table)
        return TableMetadata(_avro_columns(files[0]) if ending == ".avro" else duckdb_files.read_columns(files, ending))

    def key_evidence(self, table: str, key: Sequence[str]) -> KeyEvidence:
        files, ending = self._files(table)
        return _avro_evidence(files, key) if ending == ".avro" else duckdb_files.read_key_evidence(files, ending, key)

    def newest_values(self, table: str, columns: Sequence[str], limit: int) -> NewestValues:
        files, ending = self._files(table)
        return NewestValues() if ending == ".avro" else duckdb_files.read_newest_values(files, ending, columns, limit)

    def table(self, table: str) -> Files:
        folder = self.url.rstrip("/")
        return Files(f"{folder}/{table}", PurePosixPath(table).suffix.lstrip("."), folder)

    def location(self) -> LocalPath:
        return LocalPath(self._folder)

    def table_location(self, table: str) -> LocalTable:
        """The files that the glob matches now, links followed; where there are none yet, the glob itself."""
        try:
            files, _ = self._files(table)
        except NoSuchTable:
            return LocalTable(frozenset({os.path.realpath(self._folder / table)}))
        return LocalTable(frozenset(map(os.path.realpath, files)))

    @cached_property
    def _folder(self) -> Path:
        return local_path(self.url)

    def _files(self, table: str) -> tuple[list[Path], str]:
        if not self._folder.is_dir():
            raise MetadataUnavailable(f"There is no folder {self._folder}. Give a URL such as file:///data.")
        if Path(table).is_absolute() or ".." in Path(table).parts:
            raise MetadataUnavailable(f"`{table}` leaves the folder {self._folder}: give a glob below it.")
        try:
            matches = sorted(self._folder.glob(table))
        except ValueError as error:
            raise MetadataUnavailable(f"`{table}` is no glob of files: {error}") from error
        files = inside_folder(without_special_files(matches), self._folder)
        endings = {file.suffix for file in files if file.is_file()}
        if len(endings) != 1 or not endings <= set(FILE_ENDINGS):
            kind = MetadataUnavailable if matches else NoSuchTable
            raise kind(
                f"`{table}` matches {len(files)} files with the endings {sorted(endings)} in {self._folder}; "
                f"give a glob for files of one of {', '.join(FILE_ENDINGS)}."
            )
        return files, endings.pop()


def _avro_columns(file: Path) -> tuple[ColumnMetadata, ...]:
    with _opened(file) as avro:
        return tuple(ColumnMetadata(field["name"], *avro_column_type(field["type"])) for field in avro.schema["fields"])


@contextmanager
def _opened(file: Path) -> Iterator[AvroFile]:
    """Raises MetadataUnavailable, also for what is wrong while it is read."""
    try:
        with file.open("rb") as source:
            yield AvroFile(source)
    except (BadAvro, OSError) as error:
        raise MetadataUnavailable(explain_damage(error, [file], shown=f"The file {file.name}")) from error


def _avro_evidence(files: list[Path], key: Sequence[str]) -> KeyEvidence:
    """Of the first rows: each is read by Python, which takes a hundred times as long as it takes DuckDB."""
    rows, nulls, distinct_keys, null_columns = 0, 0, set(), Counter[str]()
    for record in islice(_avro_records(files), SAMPLE_ROWS):
        rows += 1
        value = tuple(record.get(part) for part in key)
        if None in value:
            nulls += 1
            null_columns.update(part for part, held in zip(key, value, strict=True) if held is None)
        else:
            distinct_keys.add(value)
    total = sum(_avro_rows(file) for file in files) if rows == SAMPLE_ROWS else rows
    if total == rows:
        return KeyEvidence(rows, len(distinct_keys), nulls, dict(null_columns))
    return KeyEvidence(rows, len(distinct_keys), nulls, dict(null_columns), Drawn.FIRST, total)


def _avro_rows(file: Path) -> int:
    """By the heads of its blocks; no row is read."""
    with _opened(file) as avro:
        return avro.row_count()


def _avro_records(files: list[Path]) -> Iterator[dict[str, Any]]:
    for file in files:
        with _opened(file) as avro:
            yield from avro.records()
