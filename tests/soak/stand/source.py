"""The source: a table of orders in PostgreSQL, and a writer that inserts and updates rows all the while, not through the forwarder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from threading import Condition, Thread
from typing import Any

import psycopg

DAYS = 20
NEWEST_DAYS_AGO = 8
"""The day that is written to last: by then each is due, as freshness is 5 days."""
FILLED_UP_TO_DAYS_AGO = 3
"""The days up to this one have rows that never change, so that the dataset is fresh."""
DEFECT_EVERY = 4
"""Defects are planted in each fourth day: incidents of days that touch are one."""
ROWS_A_DAY = 20
_WRITE_EVERY_S = 0.2
_BURST = 15
"""So many writes go to the same day: an upsert of many partitions takes long."""

Row = tuple[int, date, Decimal, str, datetime]


class Source:
    """Orders of DAYS days. Amounts are positive, but for defects that are planted."""

    def __init__(self, url: str, rng: Random) -> None:
        self._url, self._rng = url, rng
        today = datetime.now(UTC).date()
        self.days = [today - timedelta(days=NEWEST_DAYS_AGO + back) for back in range(DAYS)]
        self.quiet_days = [today - timedelta(days=back) for back in range(FILLED_UP_TO_DAYS_AGO, NEWEST_DAYS_AGO)]
        self.defects: dict[date, int] = {}
        """The days that are wrong now, and the id of the wrong order."""
        self.ever_wrong: set[date] = set()
        self.written = 0
        self._writing = Condition()
        self._is_writing = self._is_closed = False
        self._create()

    # What is in it

    def rows(self) -> set[Row]:
        with self._connect() as db:
            return set(db.execute("SELECT id, day, amount, note, updated_at FROM orders").fetchall())

    # Defects

    def plant_defect(self) -> str:
        """An amount below zero on a day that has none; says which."""
        sound = [day for day in self.days[::DEFECT_EVERY] if day not in self.defects]
        if not sound:
            return ""
        day = self._rng.choice(sorted(sound))
        with self._connect() as db:
            (number,) = db.execute(
                "UPDATE orders SET amount = -amount, updated_at = clock_timestamp()"
                " WHERE id = (SELECT min(id) FROM orders WHERE day = %s) RETURNING id",
                [day],
            ).fetchone() or (0,)
        self.defects[day] = number
        self.ever_wrong.add(day)
        return f"defect in {day}"

    def heal_defect(self) -> str:
        if not self.defects:
            return ""
        day = self._rng.choice(sorted(self.defects))
        number = self.defects.pop(day)
        with self._connect() as db:
            db.execute("UPDATE orders SET amount = -amount, updated_at = clock_timestamp() WHERE id = %s", [number])
        return f"healed {day}"

    # The writer

    @contextmanager
    def writer(self) -> Iterator[None]:
        thread = Thread(target=self._write, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._is_closed = True
            self._set_writing(True)
            thread.join()

    def resume(self) -> None:
        self._set_writing(True)

    def pause(self) -> None:
        """Nothing is written after this returns."""
        self._set_writing(False)

    def _set_writing(self, is_writing: bool) -> None:
        with self._writing:
            self._is_writing = is_writing
            self._writing.notify_all()

    def _write(self) -> None:
        rng = Random(self._rng.random())
        with self._connect() as db:
            while not self._is_closed:
                day = rng.choice(self.days)
                for _ in range(rng.randint(1, _BURST)):
                    with self._writing:
                        self._writing.wait_for(lambda: self._is_writing)
                        if self._is_closed:
                            return
                        self._write_some(db, day, rng)
                        self._writing.wait(_WRITE_EVERY_S)

    def _write_some(self, db: psycopg.Connection[Any], day: date, rng: Random) -> None:
        if rng.random() < 0.5:
            db.execute(
                "INSERT INTO orders (day, amount, note, updated_at) VALUES (%s, %s, %s, clock_timestamp())",
                [day, Decimal(rng.randint(1, 99_999)) / 100, f"new {rng.random()}"],
            )
            self.written += 1
        else:
            changed = db.execute(
                "UPDATE orders SET amount = %s, note = %s, updated_at = clock_timestamp()"
                " WHERE day = %s AND amount > 0 AND id %% 7 = %s",
                [Decimal(rng.randint(1, 99_999)) / 100, f"changed {rng.random()}", day, rng.randint(0, 6)],
            )
            self.written += changed.rowcount

    def _create(self) -> None:
        with self._connect() as db:
            db.execute(
                "CREATE TABLE orders (id bigserial PRIMARY KEY, day date NOT NULL, amount numeric(12, 2) NOT NULL,"
                " note text NOT NULL, updated_at timestamptz NOT NULL)"
            )
            db.execute("CREATE INDEX ON orders (updated_at)")
            for day in self.days + self.quiet_days:
                db.execute(
                    "INSERT INTO orders (day, amount, note, updated_at)"
                    " SELECT %s, 10 + number, 'first', clock_timestamp() FROM generate_series(1, %s) AS number",
                    [day, ROWS_A_DAY],
                )

    def _connect(self) -> psycopg.Connection[Any]:
        # Its work is one statement each: committed at once, so that a later time is never read before an earlier one.
        return psycopg.connect(self._url, autocommit=True)
