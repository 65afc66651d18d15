"""The time of events beside the partition, or without one: after midnight, local, dated 2031, null, or not there."""

from __future__ import annotations

from tests.contracts.awkward.losses import BY_DAY
from tests.contracts.awkward.shape import EVERYWHERE, FILES, KNOWING_ZONES, PARQUET, SQLITE, Shape, grid, series

DAYS = series("2026-11-10", "2026-11-16", "1 day")
DAY = "strftime(ts, '%Y-%m-%d') AS ds"


def loaded(values: str, /, days: str = DAYS, **more: object) -> Shape:
    facts = {**BY_DAY, "event_time": "loaded", "event": "loaded", "kinds": EVERYWHERE, **more}
    return Shape(grid(days, f"{DAY}, {values} AS loaded"), **facts)  # type: ignore[arg-type]


SHAPES = {
    "a batch after midnight": loaded("ts + INTERVAL 25 HOUR"),
    "events of the day": loaded("ts + to_hours(n)"),
    "a stale front by events": loaded("ts + to_hours(n)", series("2026-11-05", "2026-11-13", "1 day")),
    "an event of 2031": loaded("CASE WHEN n = 3 AND day(ts) = 12 THEN TIMESTAMP '2031-01-01' ELSE ts END"),
    "an event of 2031 and a stale front": loaded(
        "CASE WHEN n = 3 AND day(ts) = 12 THEN TIMESTAMP '2031-01-01' ELSE ts END", series("2026-11-05", "2026-11-13", "1 day")
    ),
    "events that are null": loaded("NULL::TIMESTAMP"),
    "events that are dates": loaded("ts::DATE", event="loaded::TIMESTAMP"),
    "events with a zone": loaded("timezone('America/New_York', ts + to_hours(n))", event="timezone('UTC', loaded)", kinds=KNOWING_ZONES),
    "events in one piece": Shape("SELECT n AS id, TIMESTAMP '2026-11-17 12:00:00' + to_minutes(n) AS loaded FROM range(400) AS r(n)", event_time="loaded", event="loaded", kinds=EVERYWHERE),
    "old events in one piece": Shape("SELECT n AS id, TIMESTAMP '2026-11-17 12:00:00' + to_minutes(n) AS loaded FROM range(40) AS r(n)", event_time="loaded", event="loaded", kinds=EVERYWHERE),
    "no time ts all": Shape("SELECT n AS id FROM range(40) AS r(n)", kinds=EVERYWHERE),
    "local early mornings that are the partition": Shape(
        grid(DAYS, "ts + to_minutes(n) AS ts"), column="ts", grain="day", zone="America/Sao_Paulo", local="ts",
        event_time="ts", event="timezone('UTC', timezone('America/Sao_Paulo', ts))", kinds=(PARQUET, SQLITE),
    ),
    "local evenings that are the partition": Shape(
        grid(DAYS, "ts + INTERVAL 23 HOUR AS ts"), column="ts", grain="day", zone="Asia/Tokyo", local="ts",
        event_time="ts", event="timezone('UTC', timezone('Asia/Tokyo', ts))", kinds=(PARQUET, SQLITE),
    ),
    "events that are numbers": loaded("epoch(ts)::BIGINT", refused=("event_time", "holds no times"), kinds=(PARQUET, SQLITE)),
    "events that are booleans": loaded("n > 3", refused=("event_time", "holds no times"), kinds=FILES),
}  # fmt: skip
