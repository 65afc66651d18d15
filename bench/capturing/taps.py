"""The tap alone, from the binlog to a durable message, and Debezium over the same binlog: what a row costs, and how late a change is."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from multiprocessing import get_context
from pathlib import Path

import sqlalchemy as sa

from bench.capturing import trips
from bench.capturing.debezium import STARTED_WITHIN_S, Batch, CapturedTable, Debezium, capturing, last_key
from bench.capturing.lag import Lags
from bench.harness import ChildFailed
from ingestion.changelog import Bounds
from lakehub.setup.artifacts import ArtifactNotFetched
from lakehub.setup.machine import scaled
from tests.services.tapped_server import TappedServer, tapped_server
from tests.soak.stand.waiting import NotInTime

DATABASE = TABLE = "speed"
ROWS_IN_TRANSACTION, PER_SECOND = 5_000, 500
_NO_BOUNDS = Bounds(0, 0)


@dataclass(frozen=True)
class Speed:
    """Rows that a second of a core, and a second of the clock, captures, encodes and makes durable; `event_bytes`: that they take there each.

    Of a JVM: `started`, all that it has worked since it was started; `warm`, over the second half of the rows.
    """

    per_core_s: float
    per_s: float
    event_bytes: float
    started: float | None = None
    warm: float | None = None


@dataclass(frozen=True)
class Measured:
    """`lags`: None where they were not asked for."""

    speed: Speed
    lags: Lags | None


@dataclass(frozen=True)
class Comparison:
    """`debezium`: what was measured, or why it was not."""

    tap: Measured
    debezium: Measured | str


def compare(port: int, folder: Path, rows: int, markers_s: float, *, with_debezium: bool) -> Comparison:
    """`rows` are inserted before anybody looks; then changes are written for `markers_s` to each of the two while the other rests."""
    with tapped_server(f"mysql://lakehub:lakehub@127.0.0.1:{port}", DATABASE, folder / "segments") as server:
        server.execute(f"CREATE TABLE {TABLE} ({trips.COLUMNS})")
        table = CapturedTable(port, DATABASE, TABLE, folder / "debezium")
        problem = _begin_debezium(server, table) if with_debezium else "not asked for: `--peers`"
        server.start = server.gtid()
        _insert(server, rows)
        speed = _tap_speed(server, rows)
        debezium = problem or _run_debezium(server, table, rows, markers_s)
        return Comparison(Measured(speed, _tap_lags(server, markers_s) if markers_s else None), debezium)


def _insert(server: TappedServer, rows: int) -> None:
    for start in range(0, rows, ROWS_IN_TRANSACTION):
        server.execute(
            f"INSERT INTO {TABLE} SELECT seq, '2026-11-26', concat('city ', seq), seq / 4, '2026-11-26 08:00:00', 1, seq / 3, 'a note' "
            f"FROM seq_{start + 1}_to_{start + ROWS_IN_TRANSACTION}"
        )


def _tap_speed(server: TappedServer, rows: int) -> Speed:
    """In this process, which writes segments and forces each commit to the disk."""
    began, worked = time.monotonic(), time.process_time()
    server.take(TABLE)
    lasted, worked = time.monotonic() - began, time.process_time() - worked
    return Speed(rows / worked, rows / lasted, sum(len(message) for message in server.messages(TABLE)) / rows)


def _tap_lags(server: TappedServer, seconds: float) -> Lags:
    server.take(TABLE)
    reader, reached = server.log.reader(), list[tuple[int, float]]()
    with _markers(server, seconds) as sent, server.tap(TABLE) as tap:
        first = reader.bounds(TABLE)["0"].next
        while not sent.done() or reached[-1][0] < first + len(sent.result()):
            tap.step()
            reached.append((reader.bounds(TABLE).get("0", _NO_BOUNDS).next, time.time()))
    return lags_of(sent.result(), reached, first)


def _begin_debezium(server: TappedServer, table: CapturedTable) -> str:
    """It notes where it is with the first event that it sees: so rows are inserted until it has seen the newest. Why it did not; empty: it did."""
    try:
        with capturing(table) as debezium:
            deadline = time.monotonic() + scaled(STARTED_WITHIN_S)
            for key in count(1):
                server.execute(f"INSERT INTO {TABLE} (id, day) VALUES ({-key}, '2026-11-26')")
                time.sleep(1)
                if debezium.events and last_key(table) == -key:
                    return ""
                if debezium.process.poll() is not None or time.monotonic() > deadline:
                    return str(debezium.failure())
    except (ArtifactNotFetched, ChildFailed) as problem:
        return str(problem).splitlines()[0]
    raise AssertionError("count has no end")


def _run_debezium(server: TappedServer, table: CapturedTable, rows: int, markers_s: float) -> Measured | str:
    before = table.events.stat().st_size
    try:
        with capturing(table) as debezium:
            debezium.wait_for(rows, scaled(10 * STARTED_WITHIN_S))
            speed = speed_of(debezium.batches, (table.events.stat().st_size - before) / rows)
            return Measured(speed, _debezium_lags(server, debezium, markers_s) if markers_s else None)
    except (ChildFailed, NotInTime) as problem:
        return str(problem)


def _debezium_lags(server: TappedServer, debezium: Debezium, seconds: float) -> Lags:
    first = debezium.events
    with _markers(server, seconds) as sent:
        debezium.wait_for(first + len(sent.result()), scaled(STARTED_WITHIN_S))
    return lags_of(sent.result(), [(batch.events, batch.at) for batch in debezium.batches], first)


def speed_of(batches: Sequence[Batch], event_bytes: float) -> Speed:
    """From the first batch, whose rows do not count, to the last."""
    first, last = batches[0], batches[-1]
    half = next(batch for batch in batches if 2 * batch.events >= last.events)
    per_s = (last.events - first.events) / max(last.at - first.at, 0.001)
    return Speed(_rate(first, last), per_s, event_bytes, last.events / last.core_s, _rate(half, last))


def _rate(first: Batch, last: Batch) -> float:
    return (last.events - first.events) / max(last.core_s - first.core_s, 0.001)


def lags_of(sent: Sequence[float], reached: Sequence[tuple[int, float]], first: int) -> Lags:
    """`sent`: when each change was committed; `reached`: how many events there were, and when; `first`: how many before the changes."""
    counts = [events for events, _ in reached]
    return Lags([reached[bisect_right(counts, first + place)][1] - at for place, at in enumerate(sent)])


@contextmanager
def _markers(server: TappedServer, seconds: float) -> Iterator[Future[list[float]]]:
    """Written by a process of its own: this one may be the tap's."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield pool.submit(_write, server.url.render_as_string(hide_password=False), server.database, seconds)


def _write(url: str, database: str, seconds: float) -> list[float]:
    """Updates row after row, ten in a transaction; when the COMMIT of each was sent."""
    sent = list[float]()
    engine = sa.create_engine(sa.make_url(url).set(database=database), poolclass=sa.NullPool)
    with engine.connect() as connection:
        began = time.time()
        while time.time() < began + seconds:
            for _ in range(trips.IN_TRANSACTION):
                connection.exec_driver_sql(f"UPDATE {TABLE} SET seats = seats + 1 WHERE id = {len(sent) + 1}")
                sent.append(0.0)
            sent[-trips.IN_TRANSACTION :] = [time.time()] * trips.IN_TRANSACTION
            connection.commit()
            time.sleep(max(0.0, began + len(sent) / PER_SECOND - time.time()))
    return sent
