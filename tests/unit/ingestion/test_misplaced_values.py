"""What a commit says of rows that are in no partition: the most frequent values by name, and how many there are in all."""

from __future__ import annotations

from pathlib import Path
from zoneinfo import ZoneInfo

from ingestion.domain.schema import Schema, SchemaColumn
from ingestion.sources import Chunk, EventBatch, SourceReading
from ingestion.spark.loading.fitting import FitRules
from ingestion.spark.loading.staging import MAX_MISPLACED_VALUES, StagedBatch, stage_rows
from lakehub.kernel.partitions import Grain
from lakehub.kernel.partitions.form import partition_form

TARGET = "_lakehub_partition"


def staged(folder: Path, *chunks: list[str]) -> StagedBatch:
    for name in ("rows", "errors"):
        (folder / name).mkdir()
    schema = Schema((SchemaColumn("ds", "string"), SchemaColumn(TARGET, "string")))
    rules = FitRules(schema, (TARGET,), TARGET, partition_form("ds", Grain.DAY, ZoneInfo("UTC"), "%Y%m%d"), None)
    arriving = Schema((SchemaColumn("ds", "string"),))
    reading = SourceReading(iter([EventBatch.of(Chunk({"ds": values}), arriving) for values in chunks]), dict)
    return stage_rows(reading, rules, folder.as_uri(), cursor_column=None, origin="x", alive=lambda: None)


def test_values_beyond_the_named_ones_are_in_the_totals(tmp_path: Path) -> None:
    garbage = [f"garbage {number}" for number in range(500)]
    facts = staged(tmp_path, garbage * 9, [*garbage, "20261117"]).misplaced_facts
    assert list(facts["misplaced"].values()) == [10] * 20
    assert facts["misplaced_totals"] == {"values": 500, "rows": 5_000}


def test_of_more_values_than_are_kept_every_row_is_counted(tmp_path: Path) -> None:
    values = [f"garbage {number}" for number in range(MAX_MISPLACED_VALUES)]
    batch = staged(tmp_path, values, ["late", *values[:1], *values[:1]])
    assert batch.misplaced_facts["misplaced_totals"] == {
        "values": MAX_MISPLACED_VALUES,
        "rows": MAX_MISPLACED_VALUES + 3,
    }
    assert batch.misplaced_facts["misplaced"]["garbage 0"] == 3


def test_where_every_row_has_its_partition_there_are_no_values(tmp_path: Path) -> None:
    assert staged(tmp_path, ["20261117"]).misplaced_facts == {"misplaced": {}}
