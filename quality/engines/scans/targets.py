"""What can be read: a table or files, and which of its partitions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias


class CannotRead(Exception):
    """The target cannot be read: it is not a table, is not there, or does not answer. Says which, and the remedy."""


@dataclass(frozen=True)
class HudiCopy:
    """A Hudi table; `uri` such as file:///lake/dc1/flights."""

    uri: str


@dataclass(frozen=True)
class SqlTable:
    """A table of a database; `url` is SQLAlchemy's and may hold a password, so it is not shown."""

    url: str = field(repr=False)
    table: str = ""


@dataclass(frozen=True)
class Files:
    """Files of one format below a glob: csv, jsonl, parquet or avro."""

    glob: str
    format: str


Target: TypeAlias = HudiCopy | SqlTable | Files


@dataclass(frozen=True)
class WholeTable:
    """All rows."""


@dataclass(frozen=True)
class OnePartition:
    """The rows whose partition column has this value."""

    column: str
    value: str


@dataclass(frozen=True)
class EachPartition:
    """All rows, answered by the value of the partition column."""

    column: str


Part: TypeAlias = WholeTable | OnePartition | EachPartition
