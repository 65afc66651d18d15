"""The source, and what changes in it: keys that are new, changed, moved to another day, deleted, back again, or added behind the watermark."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from ingestion.spark.contract.spec import GlobalIndexSpec
from ingestion.spark.file_groups.batch_keys import MAX_NAMED_KEYS
from tests.spark.order_shop import Orders

DAYS = tuple(f"2026-11-{day:02}" for day in range(1, 21))
_BEGAN = datetime(2026, 12, 1)
_ROWS_AT_ONCE = 50_000
_SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("amount", pa.float64()), ("updated_at", pa.string())])


@dataclass(frozen=True)
class Size:
    """How many keys a batch has, and in how many of the days they lie, or in as many more as it takes; those in few files are written without a Spark job."""

    name: str
    keys: int
    days: int


FEW_KEYS = Size("few keys", 12, len(DAYS))
"""Most alone in their file: what the index says wrongly of one is not made good by a look into the files of the others."""
FEW_FILES, ALL_FILES = Size("few files", 300, 2), Size("all files", 600, len(DAYS))
MANY_KEYS = Size("many keys", MAX_NAMED_KEYS + 10_000, 5)
"""More than a driver asks for: Spark's tasks do. A table of 100,000 keys has so many; of a smaller one two thirds are drawn, and the driver asks."""
SIZES = (FEW_KEYS, FEW_FILES, ALL_FILES, FEW_KEYS, MANY_KEYS)


@dataclass
class Batch:
    """What has changed in the source. `late_day`: a backfill of it reads what was added behind the watermark."""

    number: int
    size: Size
    counts: dict[str, int] = field(default_factory=dict)
    keys: set[int] = field(default_factory=set)
    deleted: list[int] = field(default_factory=list)
    late_day: str = ""


class Source(Orders):
    """orders(id, day, amount, updated_at): the key is the id, a partition is a day."""

    def __init__(self, folder: Path, index: GlobalIndexSpec, keys: int, random: Random) -> None:
        super().__init__(folder)
        self.table = replace(self.table, record_key=("id",), index="hbase", global_index=index)
        self._random, self._next, self._deleted = random, keys, list[int]()
        self._days_before, self._keys_before = list[str](), set[int]()
        self.sql("drop table orders")
        self.sql("create table orders(id integer primary key, day text, amount real, updated_at timestamp)")
        self.sql("create index by_time on orders(updated_at)")
        times = _times(_BEGAN)
        self.sql(_INSERT, ((key, DAYS[key % len(DAYS)], float(key), next(times)) for key in range(keys)))

    def draw(self, number: int, size: Size, *, is_late: bool) -> Batch:
        """Of the keys drawn a fifth moves, a tenth is deleted, and most change; as many as moved are new, and some come back."""
        random, batch = self._random, Batch(number, size)
        days = self._days(max(size.days, self._days_of(size.keys)))
        drawn = self._drawn(days, size.keys)
        fifth = len(drawn) // 5
        moved, deleted, changed = drawn[:fifth], drawn[fifth : fifth + fifth // 2], drawn[2 * fifth :]
        back = random.sample(self._deleted, min(len(self._deleted), fifth // 4))
        new = [*self._take_new(fifth), *back]
        times = _times(_BEGAN + timedelta(minutes=number))
        self._note(batch, "changed", changed, [(amount_of(number, key), next(times), key) for key in changed])
        self._note(
            batch, "moved", moved, [(random.choice(days), amount_of(number, key), next(times), key) for key in moved]
        )
        self._note(batch, "new", new, [(key, random.choice(days), amount_of(number, key), next(times)) for key in new])
        self._note(batch, "deleted", deleted, [(key,) for key in deleted])
        batch.deleted = deleted
        self._deleted = [key for key in self._deleted if key not in batch.keys] + deleted
        if is_late:
            batch.late_day = random.choice(DAYS)
            late = self._take_new(20)
            at = _text(_BEGAN)
            self._note(batch, "late", late, [(key, batch.late_day, amount_of(number, key), at) for key in late])
        self._keys_before = {*moved, *new}
        return batch

    def rows_into(self, file: Path, keys: Iterable[int] | None = None) -> None:
        """All rows, or those of some keys, as a Parquet file; some at a time."""
        where = "" if keys is None else f" where id in ({', '.join(map(str, keys))})"
        statement = f"select id, day, amount, updated_at from orders{where}"
        with closing(sqlite3.connect(self.database)) as connection, pq.ParquetWriter(file, _SCHEMA) as out:
            cursor = connection.execute(statement)
            while rows := cursor.fetchmany(_ROWS_AT_ONCE):
                columns = [
                    pa.array(column, type_)
                    for column, type_ in zip(zip(*rows, strict=True), _SCHEMA.types, strict=True)
                ]
                out.write_table(pa.table(columns, schema=_SCHEMA))

    def count(self) -> int:
        with closing(sqlite3.connect(self.database)) as connection:
            rows: int = connection.execute("select count(*) from orders").fetchone()[0]
        return rows

    def _days_of(self, keys: int) -> int:
        """In so many there are enough that so many can be drawn."""
        return min(len(DAYS), -(-keys * len(DAYS) * 3 // (2 * self.count())))

    def _days(self, count: int) -> list[str]:
        """Some that the batch before had, too: so its keys come again."""
        before = self._random.sample(self._days_before, min(len(self._days_before), -(-count // 2)))
        others = [day for day in DAYS if day not in before]
        self._days_before = before + self._random.sample(others, count - len(before))
        return self._days_before

    def _drawn(self, days: Sequence[str], count: int) -> list[int]:
        """Keys that are there now on these days; a third of them those that are new, or elsewhere, since the batch before, where there are so many."""
        marks = ", ".join("?" * len(days))
        with closing(sqlite3.connect(self.database)) as connection:
            rows = connection.execute(f"select id from orders where day in ({marks}) order by id", days)
            keys = [key for (key,) in rows]
        again = [key for key in keys if key in self._keys_before]
        again = self._random.sample(again, min(count // 3, len(again)))
        others = self._random.sample(keys, min(count, 2 * len(keys) // 3))
        drawn = list(dict.fromkeys(again + others))[:count]
        return self._random.sample(drawn, len(drawn))

    def _take_new(self, count: int) -> list[int]:
        self._next += count
        return [*range(self._next - count, self._next)]

    def _note(self, batch: Batch, what: str, keys: Sequence[int], rows: Sequence[tuple[object, ...]]) -> None:
        if rows:
            self.sql(_STATEMENTS[what], rows)
        batch.counts[what] = len(keys)
        batch.keys.update(keys)


def _times(after: datetime) -> Iterator[str]:
    """Each another one: a job reads the newest of the batch before once more, and no other."""
    for count in itertools.count(1):
        yield _text(after + timedelta(microseconds=count))


def _text(at: datetime) -> str:
    return at.isoformat(" ", "microseconds")


_INSERT = "insert into orders values (?, ?, ?, ?)"
_STATEMENTS = {
    "changed": "update orders set amount = ?, updated_at = ? where id = ?",
    "moved": "update orders set day = ?, amount = ?, updated_at = ? where id = ?",
    "deleted": "delete from orders where id = ?",
    "new": _INSERT,
    "late": _INSERT,
}


def amount_of(number: int, key: int) -> float:
    return number + key / 2**30
