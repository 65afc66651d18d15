"""File formats: each a schema and a stream of chunks. To add one: a module here with a class, a line in FORMATS.

All of them bound the length of a record, the number of columns, and what a chunk takes in memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Protocol

from ingestion.domain.schema import Schema
from ingestion.sources import Chunk
from ingestion.sources.files.formats.avro import AvroFormat
from ingestion.sources.files.formats.delimited import CsvFormat
from ingestion.sources.files.formats.json_lines import JsonLinesFormat
from ingestion.sources.files.formats.parquet import ParquetFormat


class Format(Protocol):
    """`file` is open for reading and at its beginning. ValueError and EOFError say what is wrong with it.

    `known_names`: the columns of the files before it. A format whose columns are those of its rows leaves out what the lake cannot hold beside them.
    """

    def schema(self, file: Any, known_names: Collection[str] = (), /) -> Schema: ...

    def chunks(self, file: Any, rows: int) -> Iterator[Chunk]: ...


FORMATS: dict[str, Format] = {
    ".csv": CsvFormat(),
    ".jsonl": JsonLinesFormat(),
    ".ndjson": JsonLinesFormat(),
    ".parquet": ParquetFormat(),
    ".avro": AvroFormat(),
}
