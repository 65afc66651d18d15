"""One scan that groups by partition answers as a scan of each partition does, also of hours that a clock shows twice."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehub.catalog.metadata.tables import Files
from lakehub.kernel.partitions import Grain, partition_at, partition_name
from lakehub.kernel.partitions.form import PartitionForm
from quality.domain.language.measures import ROWS
from quality.engines import engine_for
from quality.engines.scans.parts import OnePartition
from quality.measuring.requests import AnyRequest, MeasureRequest, ScanTable
from quality.measuring.scan_planner import MIN_PARTITIONS_FOR_GROUPED_SCAN, run_requests

HOUR = timedelta(hours=1)
CLOCKS_GO_BACK = {
    "Europe/Berlin": datetime(2026, 10, 25, 1, tzinfo=UTC),
    "America/St_Johns": datetime(2026, 11, 1, 4, 30, tzinfo=UTC),
    "Australia/Lord_Howe": datetime(2026, 4, 4, 15, tzinfo=UTC),
}


@pytest.mark.parametrize("text", ["%Y%m%d%H", "time", "time in UTC", ""])
@pytest.mark.parametrize("zone", CLOCKS_GO_BACK)
def test_each_hour_has_the_rows_that_its_own_scan_finds(zone: str, text: str, tmp_path: Path) -> None:
    tz = ZoneInfo(zone)
    form = PartitionForm(("at",), Grain.HOUR, tz, text)
    hours = list(
        dict.fromkeys(partition_at(CLOCKS_GO_BACK[zone] + hour * HOUR, Grain.HOUR, tz) for hour in range(-3, 4))
    )
    stored = Counter[object]()
    for count, hour in enumerate(hours, 1):
        local = hour.start.astimezone(tz).replace(tzinfo=None, fold=0)
        utc = hour.start.replace(tzinfo=None)
        stored[{"time": local, "time in UTC": utc}.get(text, form.value_of(hour))] += count
    table = _table(tmp_path, list(stored.elements()))
    requests = {
        hour: MeasureRequest(table, OnePartition("at", partition_name(hour, Grain.HOUR, tz), form), ROWS)
        for hour in hours
    }
    asked: list[AnyRequest] = list(requests.values())
    assert len(asked) >= MIN_PARTITIONS_FOR_GROUPED_SCAN
    together = run_requests(asked)
    alone = {request: run_requests([request])[request] for request in asked}
    assert {request: answer.answer for request, answer in together.items()} == {
        request: answer.answer for request, answer in alone.items()
    }
    assert all(answer.answer for answer in alone.values())


def _table(folder: Path, values: list[object]) -> ScanTable:
    kind = pa.timestamp("us") if isinstance(values[0], datetime) else pa.string()
    pq.write_table(pa.table({"at": pa.array(values, kind)}), folder / "flights.parquet")
    target = Files(f"{folder}/*.parquet", "parquet")
    return ScanTable(engine_for(target), target, timedelta(minutes=2))
