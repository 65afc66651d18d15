"""What is true of the written rows, by a few lines of DuckDB and pandas: this module knows nothing of the product.

The clock is a grid of minutes of which each has its local hour or date; tables are DuckDB's `here`, `there` and `upstream`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import duckdb
import pandas as pd

Bucket = tuple[datetime, int]
"""Where the local clock stands when a partition begins, and of hours how many seconds it is ahead of UTC (else 0)."""
EPOCH = pd.Timestamp(0, tz="UTC")
WHOLE: Bucket = (datetime(1, 1, 1), 0)
HISTORY = 800
GAP = {"hour": 720}
"""So many buckets without rows are holes, of others 30; more are the end of what belongs together."""
FREQUENCIES = {"day": "D", "week": "W-MON", "month": "MS", "quarter": "QS", "year": "YS"}
FRESHNESS, SHARE = timedelta(hours=2), 0.001
"""Of tier 1."""


@dataclass(frozen=True)
class Truth:
    """What is so at `now`: outcomes by test and bucket, and where rows lie that no bucket has."""

    outcomes: Mapping[tuple[str, Bucket], str]
    front: pd.Timestamp | None
    """c; None where nothing says it."""
    ends: Mapping[Bucket, tuple[pd.Timestamp, pd.Timestamp]]
    unreadable: int
    ahead: frozenset[Bucket]

    def failing(self, tests: Sequence[str]) -> set[Bucket]:
        return {bucket for (test, bucket), outcome in self.outcomes.items() if test in tests and outcome == "fail"}


@dataclass(frozen=True)
class Question:
    """The names are columns of the tables, or SQL over them."""

    grain: str
    zone: str
    key: tuple[str, ...]
    local: str = ""
    offset: str = "0"
    upstream_local: str = ""
    event: str = ""
    other: str = ""
    """The data center of `there`; empty: there is no other copy."""
    has_upstream: bool = False
    external_upstream: bool = False
    comparable: bool = True
    """The keys may be compared with those of another place."""
    by: str = ""
    """A column by whose values completeness is asked for too, as the test `groups`."""
    onboarded: pd.Timestamp = EPOCH


def quoted(names: Sequence[str]) -> str:
    return ", ".join('"' + name.replace('"', '""') + '"' for name in names)


class Oracle:
    """`tables`: a database with the views `here`, and where they are asked about `there` and `upstream`."""

    def __init__(self, tables: duckdb.DuckDBPyConnection, question: Question) -> None:
        self.db, self.ask = tables, question
        for name in self._sides():
            local = question.upstream_local if name == "upstream" and question.upstream_local else question.local
            cut = "TIMESTAMP '0001-01-01'" if question.grain == "none" else f"date_trunc('{question.grain}', {local})"
            offset = question.offset if question.grain == "hour" else "0"
            tables.execute(
                f"CREATE OR REPLACE VIEW cut_{name} AS SELECT *, {cut} AS oracle_bucket, {offset or 0} AS oracle_offset FROM {name}"
            )

    def truth(self, now: pd.Timestamp) -> Truth:
        counts = self._counts()
        known = counts[counts.oracle_bucket.notna()]
        if self.ask.grain == "none":
            return Truth(self._outcomes(known, [WHOLE], now), self._front_of_whole(counts, now), {}, 0, frozenset())
        calendar = self._calendar(known, now)
        here = known.merge(calendar, on=["oracle_bucket", "oracle_offset"], how="left")
        ahead = here[(here.here > 0) & (here.start > self._floor(calendar, now).end)]
        unreadable = counts[counts.oracle_bucket.isna()].here.sum()
        tested = self._tested(here, calendar, now)
        return Truth(
            self._outcomes(known, tested, now),
            self._front(here, calendar, now),
            {
                (row.oracle_bucket.to_pydatetime(), int(row.oracle_offset)): (row.start, row.end)
                for row in calendar.itertuples()
            },
            int(unreadable),
            frozenset(_buckets(ahead)),
        )

    def _sides(self) -> list[str]:
        return ["here", *["there"] * bool(self.ask.other), *["upstream"] * self.ask.has_upstream]

    # Rows

    def _counts(self) -> pd.DataFrame:
        """By bucket the rows of each side, and the different keys of ours."""
        counts = pd.DataFrame(
            {"oracle_bucket": pd.Series(dtype="datetime64[us]"), "oracle_offset": pd.Series(dtype="int64")}
        )
        for name in self._sides():
            of_key = (
                f", count(DISTINCT ({quoted(self.ask.key)},)) AS keys, count(*) FILTER ({self._has_no_key()}) AS keyless"
                if name == "here" and self.ask.key
                else ""
            )
            side = self.db.execute(
                f"SELECT oracle_bucket, oracle_offset::BIGINT AS oracle_offset, count(*) AS {name}{of_key} FROM cut_{name} GROUP BY 1, 2"
            ).df()
            counts = counts.merge(
                side.astype({"oracle_bucket": "datetime64[us]"}), on=["oracle_bucket", "oracle_offset"], how="outer"
            )
        for column in {"here", "there", "upstream", "keys", "keyless"}:
            counts[column] = counts[column].fillna(0).astype("int64") if column in counts else 0
        return counts

    def _has_no_key(self) -> str:
        return " OR ".join(f"{quoted([name])} IS NULL" for name in self.ask.key)

    def _calendar(self, known: pd.DataFrame, now: pd.Timestamp) -> pd.DataFrame:
        """All buckets from the oldest with rows to a while after now, with their first and last instant."""
        around = [now.tz_localize(None) - pd.Timedelta(days=1), now.tz_localize(None) + pd.Timedelta(days=1)]
        first, last = min([*known.oracle_bucket, *around]), max([*known.oracle_bucket, *around])
        if self.ask.grain == "hour":
            return _hours(self.db, first, last, self.ask.zone)
        return _dates(self.db, first, last, self.ask)

    def _floor(self, calendar: pd.DataFrame, at: pd.Timestamp) -> pd.Series:
        return calendar[(calendar.start <= at) & (at < calendar.end)].iloc[0]

    def _tested(self, here: pd.DataFrame, calendar: pd.DataFrame, now: pd.Timestamp) -> list[Bucket]:
        """The newest with rows, the holes between them back to a gap that is too wide, and from onboarding on each; of all that are due."""
        filled = here[here[["here", "there", "upstream"]].sum(axis=1) > 0]
        filled = filled[filled.start <= now].sort_values("start").tail(HISTORY)
        tested = set(_buckets(filled))
        if len(filled):
            between = calendar[(calendar.start >= filled.start.min()) & (calendar.start <= filled.start.max())]
            gap: list[Bucket] = []
            for bucket in reversed(_buckets(between)[-HISTORY - 1 :]):
                gap = [] if bucket in tested else [*gap, bucket]
                if len(gap) > GAP.get(self.ask.grain, 30):
                    tested -= set(gap)
                    break
                tested |= set(gap)
        live = self._floor(calendar, self.ask.onboarded).start
        since = filled.start.min() if len(filled) else live
        tested |= set(_buckets(calendar[calendar.start >= max(live, since)]))
        due = set(_buckets(calendar[calendar.end + FRESHNESS <= now]))
        return sorted(tested & due)

    # Tests

    def _outcomes(
        self, known: pd.DataFrame, tested: Sequence[Bucket], now: pd.Timestamp
    ) -> dict[tuple[str, Bucket], str]:
        rows = {
            (row.oracle_bucket.to_pydatetime(), int(row.oracle_offset)): row
            for row in known.itertuples()
            if pd.notna(row.oracle_bucket)
        }
        by_key = bool(self.ask.key) and self.ask.comparable
        compared = self._compared() if self.ask.other and by_key else {}
        samples = self.ask.has_upstream and self.ask.external_upstream and by_key
        sampled = self._missing("upstream") if samples else {}
        groups = self._groups() if self.ask.by else {}
        outcomes: dict[tuple[str, Bucket], str] = self._across_buckets()
        for bucket in tested:
            row = rows.get(bucket)
            here, there, upstream, keys = (
                (row.here, row.there, row.upstream, row.keys) if row is not None else (0, 0, 0, 0)
            )
            if self.ask.grain != "none":
                outcomes["volume", bucket] = "pass" if here else "fail"
            if self.ask.key and here:
                outcomes["duplicates", bucket] = _passing(keys == here)
                outcomes["null_keys", bucket] = _passing(not row.keyless)
            if self.ask.has_upstream:
                outcomes["completeness", bucket] = (
                    "no_data" if not upstream else _passing(1 - SHARE < here / upstream < 1 + SHARE)
                )
                if samples:
                    missing, of = sampled.get(bucket, (0, 0))
                    outcomes["sample", bucket] = "no_data" if not of else _passing(missing / of < SHARE)
            if self.ask.by:
                outcomes["groups", bucket] = groups.get(bucket, "no_data")
            if self.ask.other:
                larger = max(here, there)
                outcomes[f"row_count@{self.ask.other}", bucket] = (
                    "no_data" if not larger else _passing(here / larger > 1 - SHARE)
                )
            if compared:
                for test in ("bloom", "difference"):
                    wrong, of = compared[test].get(bucket, (0, 0))
                    outcomes[f"{test}@{self.ask.other}", bucket] = (
                        "no_data" if not larger else _passing(not of or wrong / of < SHARE)
                    )
        return outcomes

    def _across_buckets(self) -> dict[tuple[str, Bucket], str]:
        """Of the whole table: rows with a key that another bucket has too. Every third: the buckets are snapshots."""
        if self.ask.grain == "none" or not self.ask.key:
            return {}
        key = quoted(self.ask.key)
        rows = self.db.execute(
            f"SELECT sum(n), sum(n - first) FILTER (buckets > 1) FROM (SELECT {key}, count(*) AS n, 1 AS first,"
            f" count(DISTINCT (oracle_bucket, oracle_offset)) AS buckets FROM cut_here WHERE NOT ({self._has_no_key()}) GROUP BY {key})"
        ).fetchone()
        keyed, repeated = rows or (None, None)
        if not keyed:
            return {("repeated_keys", WHOLE): "no_data"}
        return {} if 3 * (repeated or 0) >= keyed else {("repeated_keys", WHOLE): _passing(not repeated)}

    def _missing(self, side: str) -> dict[Bucket, tuple[int, int]]:
        """By bucket how many different keys of the other side are not here, and how many there are."""
        key = quoted(["oracle_bucket", "oracle_offset", *self.ask.key])
        return self._pairs(
            f"SELECT oracle_bucket, oracle_offset, count(*) FILTER (is_here IS NULL), count(*) FROM (SELECT DISTINCT {key}"
            f" FROM cut_{side}) LEFT JOIN (SELECT DISTINCT {key}, true AS is_here FROM cut_here) USING ({key}) GROUP BY 1, 2"
        )

    def _groups(self) -> dict[Bucket, str]:
        """The worst of the groups that either side has."""
        key = quoted(["oracle_bucket", "oracle_offset", self.ask.by])
        rows = self.db.execute(
            f"SELECT oracle_bucket, oracle_offset, bool_and(coalesce(h.n, 0) / u.n > {1 - SHARE}), bool_or(u.n IS NULL)"
            f" FROM (SELECT {key}, count(*) AS n FROM cut_here GROUP BY ALL) h FULL JOIN (SELECT {key}, count(*) AS n FROM"
            f" cut_upstream GROUP BY ALL) u USING ({key}) GROUP BY 1, 2"
        ).fetchall()
        outcome_of = {True: {True: "no_data", False: "pass"}, False: {True: "fail", False: "fail"}}
        return {(bucket, offset): outcome_of[bool(passes)][extra] for bucket, offset, passes, extra in rows if bucket}

    def _compared(self) -> dict[str, dict[Bucket, tuple[int, int]]]:
        """What is wrong here: keys that are missing, doubled here only, or have other values; of all keys of both."""
        key = quoted(["oracle_bucket", "oracle_offset", *self.ask.key])
        self.db.execute(
            f"CREATE OR REPLACE TEMP TABLE h AS SELECT {key}, count(*) AS n FROM cut_here GROUP BY ALL;"
            f"CREATE OR REPLACE TEMP TABLE t AS SELECT {key}, count(*) AS n FROM cut_there GROUP BY ALL;"
            f"CREATE OR REPLACE TEMP TABLE c AS SELECT DISTINCT {key}, true AS changed FROM"
            f" (SELECT * FROM cut_here EXCEPT SELECT * FROM cut_there)"
        )
        difference = self._pairs(
            "SELECT oracle_bucket, oracle_offset, count(*) FILTER (h.n IS NULL OR h.n > t.n OR (changed AND t.n IS NOT NULL)), count(*)"
            f" FROM h FULL JOIN t USING ({key}) LEFT JOIN c USING ({key}) GROUP BY 1, 2"
        )
        return {"bloom": self._missing("there"), "difference": difference}

    def _pairs(self, query: str) -> dict[Bucket, tuple[int, int]]:
        rows = self.db.execute(query).fetchall()
        return {(bucket, int(offset)): (wrong, of) for bucket, offset, wrong, of in rows if bucket is not None}

    # Freshness

    def _front(self, here: pd.DataFrame, calendar: pd.DataFrame, now: pd.Timestamp) -> pd.Timestamp | None:
        """The end of the latest bucket, of those that ended, that lacks no rows; without upstream, that holds events or rows."""
        ended = (
            calendar[calendar.end <= now]
            .merge(here[["oracle_bucket", "oracle_offset", "here", "upstream"]], how="left")
            .fillna(0)
        )
        if self.ask.has_upstream:
            if not ended.upstream.any():
                return None
            since = ended[(ended.here > 0) | (ended.upstream > 0)].start.min()
            whole = ended[(ended.start >= since) & (ended.here >= (1 - SHARE) * ended.upstream)]
            return whole.end.max() if len(whole) else since
        if self.ask.event:
            latest = self._latest_event(self._floor(calendar, now).start)
            if latest is None:
                return None
            at = pd.Timestamp(latest, tz="UTC")
            older = calendar[(calendar.start <= at) & (at < calendar.end)]
            return older.end.max() if len(older) else pd.Timestamp(0, tz="UTC")
        filled = ended[ended.here > 0]
        return filled.end.max() if len(filled) else None

    def _front_of_whole(self, counts: pd.DataFrame, now: pd.Timestamp) -> pd.Timestamp | None:
        """Now, where upstream has no more; else the latest event. Of nothing else is it known when it is of."""
        if self.ask.has_upstream:
            return now if 0 < counts.upstream.sum() * (1 - SHARE) <= counts.here.sum() else None
        latest = self._latest_event(now) if self.ask.event else None
        return None if latest is None else pd.Timestamp(latest, tz="UTC")

    def _latest_event(self, before: pd.Timestamp) -> datetime | None:
        limit = before.tz_convert("UTC").tz_localize(None).to_pydatetime()
        events = f"SELECT max(e) FROM (SELECT {self.ask.event} AS e FROM here) WHERE e < ?"
        latest = self.db.execute(events, [limit]).fetchone()
        return latest[0] if latest else None

    def freshness(self, truth: Truth, now: pd.Timestamp) -> str:
        """Fresh where the front is not before the bucket that `now - SLA` lies in."""
        if truth.front is None:
            return "no_data"
        at = now - FRESHNESS
        if self.ask.grain == "none":
            return _passing(truth.front >= at)
        due = max(start for start, end in truth.ends.values() if start <= at)
        return _passing(truth.front >= due)


def _passing(passes: bool) -> str:
    return "pass" if passes else "fail"


def _buckets(frame: pd.DataFrame) -> list[Bucket]:
    return [(row.oracle_bucket.to_pydatetime(), int(row.oracle_offset)) for row in frame.itertuples()]


def _dates(db: duckdb.DuckDBPyConnection, first: pd.Timestamp, last: pd.Timestamp, ask: Question) -> pd.DataFrame:
    """Days and what is wider: from the first instant at which the clock shows the date or a later one; if it ever does."""
    frequency = FREQUENCIES[ask.grain]
    step = pd.tseries.frequencies.to_offset(frequency)
    dates = pd.date_range(step.rollback(first.normalize()), last.normalize() + 4 * step, freq=frequency)
    db.register("dates", pd.DataFrame({"date": dates}))
    rows = db.execute(
        f"SELECT date::TIMESTAMP, 0, min(t) FILTER (timezone('{ask.zone}', t) >= date), 1 FROM (SELECT date, timezone('UTC', date::TIMESTAMP) +"
        f" to_minutes(15 * i) AS t FROM dates, range(-60, 61) AS r(i)) GROUP BY date"
        f" HAVING '{ask.grain}' <> 'day' OR bool_or(timezone('{ask.zone}', t)::DATE = date::DATE) ORDER BY date"
    ).fetchall()
    frame = _frame(rows)
    return frame.assign(end=frame.start.shift(-1))[:-1]


def _hours(db: duckdb.DuckDBPyConnection, first: pd.Timestamp, last: pd.Timestamp, zone: str) -> pd.DataFrame:
    """Quarters of an hour, by the hour that the clock shows and how far it is ahead of UTC."""
    rows = db.execute(
        f"SELECT date_trunc('hour', local), (epoch(local) - epoch(t))::BIGINT, min(t), max(t) + INTERVAL 15 MINUTE FROM"
        f" (SELECT t, timezone('{zone}', t) AS local FROM (SELECT unnest(generate_series("
        f"timezone('UTC', ?::TIMESTAMP - INTERVAL 2 DAY), timezone('UTC', ?::TIMESTAMP + INTERVAL 2 DAY), INTERVAL 15 MINUTE)) AS t))"
        " GROUP BY 1, 2 ORDER BY 3",
        [first.floor("h").to_pydatetime(), last.floor("h").to_pydatetime()],
    ).fetchall()
    return _frame(rows)[1:-1]


def _frame(rows: Sequence[tuple[datetime, int, datetime, object]]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["oracle_bucket", "oracle_offset", "start", "end"])
    return frame.astype({"oracle_bucket": "datetime64[us]", "start": "datetime64[us, UTC]"})
