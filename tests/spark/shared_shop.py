"""A source that changes while several jobs load it, and the model of the table that has to come of it.

**The model.** `Shop.expected_rows` says it in code. The rows are in groups, so that the end never depends on which job was faster:

- *followed*, *equal*, *new*: they change in the source again and again, with a greater reference key, with the same one, or are inserted; all
  jobs read them. In the end the table has them as the source has.
- *doubled*: the source has each twice, with different reference keys, and both change together. The table has the greater one. Without a
  reference key the two are the same.
- *once*: they change once, with the same reference key, while a backfill that has read them waits, and the follower commits them before it.
  As nobody reads them again, they show whether the backfill has put back what it had read. The table has them as the source has.
- *late*: they were inserted after the load with cursors behind the checkpoint, so only a backfill of their partition finds them.
- *outdated*: the table has a great reference key, and the source goes on with smaller ones. With a reference key the table keeps its row;
  without one it has the source's.
- *gone*: they leave the source before the delete that names them is granted its permit. Who had read them by then may not bring them back:
  they are in the table no more.
- *dropped*: the delete names them too, but the source keeps them as they are, and they are older than the checkpoint. So no incremental
  reads them. They come back where the source changes them after the delete has committed (*revived*), and where a backfill that has read their
  partition commits after the delete, as it has to read again then. Else they stay away.

Each row is compared by all of its columns but the cursor.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from pyspark.sql import SparkSession

from ingestion.spark.contract.spec import DeleteSpec
from tests.spark.order_shop import Orders, Row

DAYS = ("2026-11-01", "2026-11-02", "2026-11-03", "2026-11-04")
BOOKED = "2026-10-31"
FOLLOWED, EQUAL, OUTDATED, DOUBLED, GONE, DROPPED, ONCE, LATE, NEW = range(100, 1000, 100)
"""The rows of a group have the numbers from here on."""
GROUP_ROWS = 12
_GREATEST_VERSION = 9
_BEHIND = 5
_MOVES = 0.3
"""The share of changed rows that may go to another partition."""
_BEFORE = "2026-11-16 07:00:00"
"""Behind the checkpoint of the load."""
_COLUMNS = ("id", "booked", "day", "amount", "version")


@dataclass(frozen=True)
class Variant:
    """A kind of table. `by_spark`: a part of its key is a date, so that no batch is small enough to be judged without Spark."""

    index: str
    day_in_key: bool
    has_reference: bool
    by_spark: bool


class Shop(Orders):
    """orders(id, booked, day, amount, version, updated_at): a partition is a day, `version` the reference key, `updated_at` the cursor."""

    def __init__(self, folder: Path, variant: Variant, random: Random) -> None:
        super().__init__(folder, index=variant.index)
        self.variant, self._random = variant, random
        self.table = replace(
            self.table,
            record_key=("id", *(["booked"] if variant.by_spark else []), *(["day"] if variant.day_in_key else [])),
            reference_key="version" if variant.has_reference else None,
        )
        self.source = replace(self.source, commit_rows=None if variant.by_spark else random.choice((None, 7)))
        self.partitions = tuple(sorted(random.sample(DAYS, random.randint(2, 3))))
        """Those that are filled again."""
        self._seconds, self._new_rows, self._are_gone = 0, 0, False
        self._revived: frozenset[int] = frozenset()
        self._unchanged = _numbers(ONCE)
        self._fill()

    def change_some(self) -> None:
        """Some rows at once, as the model allows."""
        groups = (FOLLOWED, EQUAL, OUTDATED, DOUBLED, *(() if self._are_gone else (GONE,)))
        numbers = [number for group in groups for number in _numbers(group)]
        for number in self._random.sample(numbers, self._random.randint(4, 20)):
            self._change_row(number)
        for _ in range(self._random.randint(0, 2)):
            self._insert(NEW + self._new_rows, 1, self._now())
            self._new_rows += 1

    def change_once(self) -> None:
        """A row of each day, none of which has changed; nothing when they all have."""
        changed, self._unchanged = self._unchanged[: len(DAYS)], self._unchanged[len(DAYS) :]
        for number in changed:
            self._change_row(number)

    def deleted_rows(self) -> DeleteSpec:
        texts = {"booked": BOOKED}
        keys = (
            texts | {"id": str(number), "day": _day(number)} for group in (GONE, DROPPED) for number in _numbers(group)
        )
        return DeleteSpec(keys=tuple(tuple(key[name] for name in self.table.record_key) for key in keys))

    def add_late(self) -> None:
        """After the load, and before the backfill reads."""
        self.add(*((*_first_row(number), _BEFORE) for number in _numbers(LATE)))

    def remove_gone(self) -> None:
        self._are_gone = True
        self.sql(f"delete from orders where id >= {GONE} and id < {GONE + GROUP_ROWS}")

    def revive_some(self) -> None:
        """After the delete."""
        self._revived = frozenset(self._random.sample(_numbers(DROPPED), GROUP_ROWS // 2))
        for number in sorted(self._revived):
            self._change_row(number)

    def expected_rows(self) -> list[Row]:
        by_run = {commit.run["run_id"]: commit.completed for commit in self.timeline.commits()}
        is_filled_again = by_run.get("backfill", "") > by_run["delete"]
        with sqlite3.connect(self.database) as connection:
            # SQLite takes the other columns from the row that has the greatest version.
            source_rows = connection.execute(
                "select id, booked, day, amount, max(version) from orders group by id"
            ).fetchall()
        connection.close()
        return as_texts(row for row in map(self._in_lake, source_rows) if not self._is_away(row, is_filled_again))

    def lake_rows(self, spark: SparkSession) -> list[Row]:
        return as_texts(self.rows(spark, *_COLUMNS))

    def _in_lake(self, row: Row) -> Row:
        number = row[0]
        is_outdated = self.variant.has_reference and number in _numbers(OUTDATED)
        return _first_row(number) if is_outdated else row

    def _is_away(self, row: Row, is_filled_again: bool) -> bool:
        if row[0] in _numbers(LATE):
            return row[2] not in self.partitions
        if row[0] not in _numbers(DROPPED) or row[0] in self._revived:
            return False
        return not (is_filled_again and row[2] in self.partitions)

    def _fill(self) -> None:
        self.sql("drop table orders")
        self.sql(
            "create table orders(id integer, booked date, day text, amount real, version integer, updated_at timestamp)"
        )
        self.sql("pragma journal_mode = wal")  # who reads and who changes do not wait for each other
        for group in (FOLLOWED, EQUAL, OUTDATED, GONE, DROPPED, ONCE):
            at = self._now() if group == FOLLOWED else _BEFORE
            self.add(*((*_first_row(number), at) for number in _numbers(group)))
        for number in _numbers(DOUBLED):
            rows = (_first_row(number), self._row_behind(number))
            self.add(*((*row, _BEFORE) for row in self._random.sample(rows, len(rows))))

    def _insert(self, number: int, version: int, at: str) -> None:
        self.add((number, BOOKED, self._random.choice(DAYS), self._amount(), version, at))

    def _change_row(self, number: int) -> None:
        version = "version + 1"
        if number in (*_numbers(EQUAL), *_numbers(ONCE)):
            version = "version"
        elif number in _numbers(OUTDATED):
            version = str(self._random.randint(0, _GREATEST_VERSION - 1))
        day = f"'{self._random.choice(DAYS)}'" if self._may_move(number) else "day"
        # The two rows of a doubled one get different amounts where their versions are different.
        statement = (
            f"update orders set amount = ? + version, updated_at = ?, version = {version}, day = {day} where id = ?"
        )
        self.sql(statement, [(self._amount(), self._now(), number)])

    def _row_behind(self, number: int) -> Row:
        """The other row of a doubled one."""
        *columns, amount, version = _first_row(number)
        return (*columns, amount + 0.5, version - _BEHIND) if self.variant.has_reference else _first_row(number)

    def _may_move(self, number: int) -> bool:
        """A dropped row's partition says whether the backfill has read it."""
        return not self.variant.day_in_key and number not in _numbers(DROPPED) and self._random.random() < _MOVES

    def _amount(self) -> float:
        return float(self._random.randrange(1000, 10**6))

    def _now(self) -> str:
        """Changes may share a second."""
        self._seconds += self._random.randint(0, 1)
        return f"2026-11-16 {8 + self._seconds // 3600:02}:{self._seconds // 60 % 60:02}:{self._seconds % 60:02}"


def as_texts(rows: Iterable[Row]) -> list[Row]:
    return sorted(tuple(str(value) for value in row) for row in rows)


def _numbers(group: int) -> range:
    return range(group, group + GROUP_ROWS)


def _day(number: int) -> str:
    return DAYS[number % len(DAYS)]


def _first_row(number: int) -> Row:
    return (number, BOOKED, _day(number), float(number), _GREATEST_VERSION)
