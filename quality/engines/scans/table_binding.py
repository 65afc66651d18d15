"""A table that a name in an expression stands for: what to read, how it is partitioned, by which engine."""

from __future__ import annotations

from dataclasses import dataclass
from zoneinfo import ZoneInfo

from lakehub.kernel.interval import Interval
from lakehub.kernel.partitions import Grain, partition_name
from quality.domain.language.measures import Reach
from quality.engines.scans.targets import EachPartition, OnePartition, Part, SqlTable, Target, WholeTable


@dataclass(frozen=True)
class TableBinding:
    """A table that can be read."""

    target: Target
    partition_column: str
    grain: Grain
    zone: ZoneInfo
    connection: str = ""
    """Whose table it is, where it is not in the lake."""
    copy: int | None = None
    """The copy whose table it is; None: the source of one."""

    @property
    def engine(self) -> str:
        return "sqlalchemy" if isinstance(self.target, SqlTable) else "duckdb"

    def part(self, reach: Reach, partition: Interval) -> Part:
        """The rows that a measure of `reach` looks at. A table without partitions is always looked at as a whole."""
        if self.grain is Grain.NONE or reach is Reach.TABLE or (reach is Reach.PARTITION and partition.is_everything):
            return WholeTable()
        if reach is Reach.EACH_PARTITION:
            return EachPartition(self.partition_column)
        return OnePartition(self.partition_column, partition_name(partition, self.grain, self.zone))
