"""What a first load that died has left: recognized with no JVM, by every kind of file that it writes."""

from __future__ import annotations

from pathlib import Path

from ingestion.spark.tables.hudi import remove_failed_first_write
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
