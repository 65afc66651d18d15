"""What the gate asks about for a query on a partition column that says times by a form."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from incidents.domain.gate.sql_bounds import TableShape
from incidents.domain.gate.sql_reads import parse_query, tables_read
from incidents.domain.gate.sql_times import QueryClock
from lakehub.kernel.interval import Interval
from lakehub.kernel.partitions import Grain
from lakehub.kernel.partitions.form import PartitionForm

NOW = datetime(2026, 11, 17, 19, 32, tzinfo=UTC)
UTC_ZONE = ZoneInfo("UTC")


def form_of(text: str, grain: Grain, zone: ZoneInfo) -> PartitionForm:
    return PartitionForm(("ds",), grain, zone, text)


def asked(where: str, form: PartitionForm) -> tuple[tuple[Interval, ...], bool]:
    """The ranges, and whether anything bounds them."""
    shape = TableShape(form.columns[0], form.grain, form.zone, "", frozenset({form.columns[0]}), form)
    (reads,) = tables_read(
        parse_query(f"SELECT * FROM t WHERE {where}", "duckdb"), {"t": shape}, QueryClock(NOW, UTC_ZONE)
    )
    return reads.ranges, reads.bounded
