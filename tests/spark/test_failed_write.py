"""What a write that died has left: recognized with no JVM, by every kind of file that it writes."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import fastavro

from ingestion.spark.tables.hudi import remove_failed_first_write
from ingestion.spark.tables.timeline import Timeline
from ingestion.spark.tables.unfinished_writes import torn_files
from tests.spark.order_shop import Orders


def test_all_that_a_first_load_writes_is_its_own(tmp_path: Path) -> None:
    table = Orders(tmp_path).table
    folder = tmp_path / "lake" / "orders"
    for name in (
        ".hoodie/timeline/20261116120000000.commit.requested",
        "day=2026-11-01/.hoodie_partition_metadata",
        "day=2026-11-01/..hoodie_partition_metadata.crc",
        "day=2026-11-01/a-0_0-0-0_20261116120000000.parquet",
        "day=2026-11-01/.a-0_0-0-0_20261116120000000.parquet.crc",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    (folder / ".hoodie" / "hoodie.properties").write_text("hoodie.table.version=9\n")
    remove_failed_first_write(table)
    assert not folder.exists()


def test_files_that_were_cut_off_are_known_and_what_is_older_or_whole_is_left(tmp_path: Path) -> None:
    whole = _avro_file()
    files = {
        "20261116120000000.commit.requested": b"",
        "20261116120000000.inflight": whole,
        "20261116120000000_20261116120001000.commit": whole[:-20],
        "20261116130000000.commit.requested": b"",
        "20261116130000000.inflight": whole[:40],
        "20261116140000000_20261116140001000.commit": b"",
        "20261116150000000_20261116150001000.commit": whole[: len(whole) // 2],
        "20261116160000000_20261116160001000.commit": whole,
    }
    for folder in (tmp_path / ".hoodie" / "timeline", tmp_path / ".hoodie" / "metadata" / ".hoodie" / "timeline"):
        folder.mkdir(parents=True)
        for name, content in files.items():
            (folder / name).write_bytes(content)
    torn = torn_files(Timeline(tmp_path.as_uri()), after="20261116120000500")
    expected = [name for name in files if name.startswith(("2026111613", "2026111614", "2026111615"))]
    expected.remove("20261116130000000.commit.requested")
    assert sorted(torn) == sorted(
        f"{folder}/{name}" for folder in (".hoodie/timeline", ".hoodie/metadata/.hoodie/timeline") for name in expected
    )


def _avro_file() -> bytes:
    schema = {"type": "record", "name": "commit", "fields": [{"name": "extra", "type": "string"}]}
    out = BytesIO()
    fastavro.writer(out, schema, [{"extra": "x" * 100}])
    return out.getvalue()
