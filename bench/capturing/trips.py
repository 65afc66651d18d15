"""The table that is written and captured: trips of many days, 90 % of whose changes are of the two newest, or spread over all."""

from __future__ import annotations

import time
from random import Random
from threading import Event, Thread

from bench.capturing.stage import Stage

IN_TRANSACTION = 10
COLUMNS = "id int PRIMARY KEY, day date NOT NULL, city varchar(40), fare decimal(8,2), began datetime(6), seats int, distance double, note varchar(60)"


def create(stage: Stage, table: str, rows: int, days: int) -> None:
    stage.execute(
        f"CREATE TABLE {table} ({COLUMNS})",
        f"INSERT INTO {table} SELECT seq, date '2026-09-29' + interval (seq % {days}) day, concat('city ', seq % 997), seq % 9999 / 4, "
        f"'2026-11-26 08:00:00', seq % 7, seq / 3, concat('note of trip ', seq) FROM seq_1_to_{rows}",
    )


class Writer:
    """Updates so many rows a second, ten in a transaction, until it is stopped. `share_of_newest`: of changes that are of the two newest days."""

    def __init__(self, stage: Stage, table: str, rows: int, days: int, per_second: int, share_of_newest: float) -> None:
        self._stage, self._table, self._rows, self._days = stage, table, rows, days
        self._per_second, self._share, self._random = per_second, share_of_newest, Random(7)
        self._is_over, self._thread, self.written = Event(), Thread(target=self._write, daemon=True), 0

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _write(self) -> None:
        began = time.monotonic()
        with self._stage.standing.source.session(autocommit=False) as cursor:
            while not self._is_over.is_set():
                for _ in range(IN_TRANSACTION):
                    cursor.execute(
                        f"UPDATE {self._table} SET fare = fare + 1, seats = seats + 1 WHERE id = {self._number()}"
                    )
                cursor.connection.commit()
                self.written += IN_TRANSACTION
                ahead_s = self.written / self._per_second - (time.monotonic() - began)
                if ahead_s > 0:
                    time.sleep(ahead_s)

    def _number(self) -> int:
        number = self._random.randrange(1, self._rows - self._days)
        if self._random.random() >= self._share:
            return number
        return number - number % self._days + self._random.choice((self._days - 1, self._days - 2))
