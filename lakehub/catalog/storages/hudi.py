"""Hudi tables, read through the file slices that hudi-rs lists: no JVM."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from hudi import HudiTable

from lakehub.catalog.metadata import (
    KeyEvidence,
    MetadataUnavailable,
    NewestValues,
    NoSuchTable,
    TableMetadata,
    duckdb_files,
)
from lakehub.catalog.metadata.table_locations import LocalTable
from lakehub.catalog.metadata.tables import HudiCopy
from lakehub.catalog.storages import LocalPath, Storage, local_path
from lakehub.kernel.lake_names import OWN_PREFIXES
from lakehub.kernel.suggest import did_you_mean

_PROPERTIES_FILE = Path(".hoodie") / "hoodie.properties"


class HudiStorage(Storage):
    """`url` is a lake root, `file:///lake/dc1`; a table is a folder below it."""

    is_lake = True
    empty_hint = "No folder right below it is a Hudi table: give the URL of the folder that holds the tables."
    url_example = "file:///lake/dc1"

    def tables(self, limit: int) -> Sequence[str]:
        return sorted(folder.name for folder in self._root.glob("*") if (folder / _PROPERTIES_FILE).is_file())[:limit]

    def describe(self, table: str) -> TableMetadata:
        files = self._slices(table)
        columns = tuple(
            column
            for column in duckdb_files.read_columns(files, ".parquet")
            if not column.name.startswith(OWN_PREFIXES)
        )
        return TableMetadata(columns, self._record_key(table))

    def key_evidence(self, table: str, key: Sequence[str]) -> KeyEvidence:
        return duckdb_files.read_key_evidence(self._slices(table), ".parquet", key)

    def newest_values(self, table: str, columns: Sequence[str], limit: int) -> NewestValues:
        return duckdb_files.read_newest_values(self._slices(table), ".parquet", columns, limit)

    def table(self, table: str) -> HudiCopy:
        return HudiCopy(f"{self.url.rstrip('/')}/{table}")

    def location(self) -> LocalPath:
        return LocalPath(self._root)

    def table_location(self, table: str) -> LocalTable:
        return LocalTable(frozenset({os.path.realpath(self._root / table)}))

    @cached_property
    def _root(self) -> Path:
        return local_path(self.url)

    def _slices(self, table: str) -> list[Path]:
        folder = self._root / table
        if Path(table).is_absolute() or ".." in Path(table).parts:
            raise MetadataUnavailable(f"`{table}` leaves the lake {self._root}: give the name of a folder below it.")
        if not (folder / _PROPERTIES_FILE).is_file():
            near = did_you_mean(table, self.tables(100))
            kind = NoSuchTable if self._root.is_dir() else MetadataUnavailable
            raise kind(f"{folder} is not a Hudi table: it has no {_PROPERTIES_FILE}.{near}")
        try:
            slices = HudiTable(folder.as_uri()).get_file_slices()
        except Exception as error:
            if type(error).__name__ != "HudiCoreError":  # the extension does not export its class
                raise
            raise MetadataUnavailable(f"The Hudi table {folder} cannot be read: {error}") from error
        if not slices:
            raise MetadataUnavailable(f"The Hudi table {folder} has no commit with rows yet.")
        return [folder / file_slice.base_file_relative_path() for file_slice in slices]

    def _record_key(self, table: str) -> tuple[str, ...]:
        for line in (self._root / table / _PROPERTIES_FILE).read_text().splitlines():
            name, _, value = line.partition("=")
            if name == "hoodie.table.recordkey.fields" and value:
                return tuple(value.split(","))
        return ()
