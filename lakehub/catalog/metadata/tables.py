"""Where a table lies, in the form in which an engine reads it. A storage makes these of its URL and a table's name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar


@dataclass(frozen=True)
class StoredTable:
    """A table that an engine can be asked to read; which engines read which of these forms, they say themselves.

    Equal tables are one: what is measured of them is planned and kept by the table.
    """

    usual_engine: ClassVar[str] = ""
    """Known without a look at the engines, whose libraries are large. Empty: the first that reads it."""
    unread_remedy: ClassVar[str] = "install the package that brings one"
    """Where no engine reads it: what to do."""


@dataclass(frozen=True)
class HudiCopy(StoredTable):
    """A Hudi table; `uri` such as file:///lake/dc1/flights."""

    usual_engine = "duckdb"
    uri: str


@dataclass(frozen=True)
class SqlTable(StoredTable):
    """A table of a database; `url` is SQLAlchemy's and may hold a password, so it is not shown."""

    usual_engine = "sqlalchemy"
    url: str = field(repr=False)
    table: str = ""


@dataclass(frozen=True)
class Files(StoredTable):
    """Files of one format below a glob: csv, jsonl, parquet or avro. `folder`: no link out of it is read; empty: links may lead anywhere."""

    usual_engine = "duckdb"
    glob: str
    format: str
    folder: str = field(default="", compare=False)
