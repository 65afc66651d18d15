"""A folder of Parquet files that Lakehub only monitors: the prices of each day, one file a day."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

ARTICLES = 500


class Prices:
    def __init__(self, folder: Path, days: Sequence[date], quiet_days: Sequence[date]) -> None:
        """`days`: those of the files that may be damaged."""
        self.folder = folder
        folder.mkdir()
        self.files = [self._write(day) for day in days]
        for day in quiet_days:
            self._write(day)

    def damage(self, file: Path) -> bytes:
        """Cuts it in half, as a copy that was interrupted leaves it; what was in it."""
        whole = file.read_bytes()
        file.write_bytes(whole[: len(whole) // 2])
        return whole

    def restore(self, file: Path, whole: bytes) -> None:
        file.write_bytes(whole)

    def _write(self, day: date) -> Path:
        rows = pa.table({
            "article": pa.array(range(ARTICLES), pa.int64()),
            "day": pa.array([day] * ARTICLES, pa.date32()),
            "price": pa.array([1 + number / 7 for number in range(ARTICLES)], pa.float64()),
            "updated_at": pa.array([datetime.now(UTC)] * ARTICLES, pa.timestamp("us", "UTC")),
        })  # fmt: skip
        file = self.folder / f"{day}.parquet"
        pq.write_table(rows, file)
        return file
