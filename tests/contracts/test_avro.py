"""Avro files are measured like the others, and refused with a remedy where they are too large for memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fastavro
import pytest

from lakehub.catalog.metadata.tables import Files
from quality.domain.language.measures import ROWS, Measure
from quality.engines.duckdb import DuckDbEngine
from quality.engines.scans.parts import CannotRead, EachPartition, OnePartition, WholeTable
from quality.engines.scans.scan import Limits, Scan
from quality.engines.storage.avro import read_avro
from quality.engines.storage.plain_files import local_files
from tests.contracts.engine_answers import COUNTS, PART, TABLE, UNMATCHED, VALUES, WORDS

FIELDS: dict[str, Any] = {
    "id": "long",
    "price": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
    "ratio": "double",
    "born": {"type": "int", "logicalType": "date"},
    "ok": "boolean",
    "zoned": {"type": "long", "logicalType": "timestamp-micros"},
    "local": {"type": "long", "logicalType": "local-timestamp-micros"},
    "word": "string",
    PART: "string",
}


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """A file for each part; the second lacks a column."""
    for part, fields in (("p1", FIELDS), ("p2", {name: kind for name, kind in FIELDS.items() if name != "ok"})):
        schema = {"type": "record", "name": "row", "fields": [_field(*field) for field in fields.items()]}
        with (tmp_path / f"{part}.avro").open("wb") as file:
            fastavro.writer(file, fastavro.parse_schema(schema), [row for row in TABLE if row[PART] == part])
    return Files(f"{tmp_path.as_uri()}/*.avro", "avro")


def _field(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None}


def test_the_answers_are_those_of_the_other_formats(files: Files) -> None:
    known = {**COUNTS, **VALUES}
    asked = tuple(measure for measure in known if set(measure.columns) <= set(FIELDS) and measure != UNMATCHED)
    measured = DuckDbEngine().measure(Scan(files, asked, OnePartition(PART, "p1")), Limits())
    assert measured.answers == {measure: known[measure][1] for measure in asked}


def test_a_column_that_one_file_lacks_is_null_there(files: Files) -> None:
    nulls = Measure("nulls", ("ok",))
    assert DuckDbEngine().measure(Scan(files, (nulls,), EachPartition(PART)), Limits()).answers == {
        nulls: {"p1": 2, "p2": 3}
    }


def test_they_can_be_looked_into(files: Files) -> None:
    own = Measure("unmatched", ("word",), WORDS, ("word",))
    assert DuckDbEngine().measure(Scan(files, (own,), WholeTable(), {WORDS: files}), Limits()).answers == {own: 0}


def test_what_does_not_fit_is_refused_with_a_remedy(files: Files) -> None:
    with pytest.raises(CannotRead, match=r"take more than 0KB in memory.* Write them as Parquet, or ingest"):
        read_avro(local_files(files), files.glob, "0KB")


def test_what_is_no_avro_is_said(tmp_path: Path) -> None:
    (tmp_path / "1.avro").write_bytes(b"neither head nor foot")
    with pytest.raises(CannotRead, match="cannot be read: it does not begin like an Avro file"):
        DuckDbEngine().measure(Scan(Files(f"{tmp_path.as_uri()}/*.avro", "avro"), (ROWS,)), Limits())
    with pytest.raises(CannotRead, match="There are no files"):
        DuckDbEngine().measure(Scan(Files(f"{tmp_path.as_uri()}/no/*.avro", "avro"), (ROWS,)), Limits())
