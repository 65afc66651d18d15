"""DuckDB over the files that hudi-rs lists, or over plain files: small scans with no JVM."""

from __future__ import annotations

import atexit
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from threading import Timer

import duckdb

from quality.domain.expression.measures import COMMITTED, ROWS, Answer, Measure
from quality.domain.expression.values import Failed, error, no_data
from quality.engines.files import Source, file_source, parquet
from quality.engines.scan import (
    CannotRead,
    Each,
    Files,
    HudiCopy,
    Limits,
    Measured,
    One,
    Part,
    Scan,
    Target,
    Whole,
    of_nothing,
)
from quality.engines.select import Dialect, cannot_look_up, select, unknown_columns
from quality.engines.slices import Snapshot, snapshot

_TRIES = 3


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


DIALECT = Dialect(quote=_quote, key=lambda columns: f"row({', '.join(columns)})", text="VARCHAR")


class DuckDb:
    """A cursor of its own for each scan, with limits that are locked."""

    def measure(self, scan: Scan, limits: Limits) -> Measured:
        if isinstance(scan.target, HudiCopy):
            return _of_hudi(scan, scan.target, limits)
        if isinstance(scan.target, Files):
            return _of_files(scan, scan.target, limits)
        raise CannotRead("DuckDB reads Hudi tables and files; for a table of a database choose engine=sqlalchemy.")


def _of_files(scan: Scan, target: Files, limits: Limits) -> Measured:
    try:
        with _connection(limits) as connection:
            answers, scans = _Reading(connection, scan, file_source(target)).answers()
    except duckdb.Error as failed:
        raise CannotRead(f"The files {target.glob} cannot be read: {_cause(failed)}") from failed
    return Measured(answers, scans=scans)


def _of_hudi(scan: Scan, target: HudiCopy, limits: Limits) -> Measured:
    """Lists and reads; lists again where a writer's cleaning took a file away in between."""
    for last in (False,) * (_TRIES - 1) + (True,):
        listed = _listed(target, scan.part)
        try:
            answers, scans = _answers(scan, listed, limits)
        except duckdb.IOException as vanished:
            if last:
                raise CannotRead(f"The files of {target.uri} cannot be read: {_cause(vanished)}") from vanished
            continue
        except duckdb.Error as failed:
            raise CannotRead(f"The files of {target.uri} cannot be read: {_cause(failed)}") from failed
        return Measured(answers, listed.instant, scans)
    raise AssertionError("the last try returns or raises")


def _cause(failed: duckdb.Error) -> str:
    return str(failed).splitlines()[0]


def _listed(target: HudiCopy, part: Part) -> Snapshot:
    return snapshot(target.uri, column=part.column, value=part.value) if isinstance(part, One) else snapshot(target.uri)


def _answers(scan: Scan, listed: Snapshot, limits: Limits) -> tuple[Mapping[Measure, Answer | Failed], int]:
    known: dict[Measure, Answer | Failed] = {}
    if COMMITTED in scan.measures:
        known[COMMITTED] = listed.committed_at
    rest = tuple(measure for measure in scan.measures if measure != COMMITTED)
    if not rest:
        return known, 0
    if not listed.slices:
        return {**known, **of_nothing(rest, each=isinstance(scan.part, Each))}, 0
    with _connection(limits) as connection:
        if rest == (ROWS,):
            return {**known, ROWS: _from_footers(connection, listed, scan.part)}, 0
        # The slices are those of the partition: nothing is left to filter.
        part = Whole() if isinstance(scan.part, One) else scan.part
        source = parquet([one.path for one in listed.slices])
        answers, scans = _Reading(connection, Scan(scan.target, rest, part, scan.tables), source).answers()
    return {**known, **answers}, scans


def _from_footers(connection: duckdb.DuckDBPyConnection, listed: Snapshot, part: Part) -> Answer:
    """Exact row counts with no scan."""
    query = "SELECT file_name, num_rows FROM parquet_file_metadata(?)"
    rows = dict(connection.execute(query, [[one.path for one in listed.slices]]).fetchall())
    if not isinstance(part, Each):
        return sum(rows.values())
    counts: dict[str | None, int] = {}
    for one in listed.slices:
        counts[one.partition] = counts.get(one.partition, 0) + rows[one.path]
    return counts


class _Reading:
    """The measures of one scan as one query; where that fails, halves, so that a bad measure does not cost its neighbours."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, scan: Scan, source: Source) -> None:
        self._connection = connection
        self._scan = scan
        self._source = source
        self._lookups = {name: _lookup(scan.tables[name]) for name in {one.other for one in scan.measures if one.other}}
        self._scans = 0

    def answers(self) -> tuple[dict[Measure, Answer | Failed], int]:
        bad: dict[Measure, Answer | Failed] = {}
        bad |= unknown_columns(self._scan.measures, self._columns(self._source))
        for measure in self._scan.measures:
            if measure.other is not None and (why := self._cannot_look_up(measure, self._lookups[measure.other])):
                bad[measure] = why
        good = [measure for measure in self._scan.measures if measure not in bad]
        return {**self._fused(good), **bad}, self._scans

    def _columns(self, source: Source) -> list[str]:
        query = self._connection.execute(f"SELECT * FROM {source.text} LIMIT 0", source.parameters)  # noqa: S608  # our own text
        return [column[0] for column in query.description or []]

    def _cannot_look_up(self, measure: Measure, table: Source | Failed) -> Failed | None:
        if isinstance(table, Failed):
            return table
        try:
            return cannot_look_up(measure, self._columns(table))
        except duckdb.IOException:
            raise
        except duckdb.Error as failed:
            return error(f"the table that is looked into cannot be read: {_cause(failed)}")

    def _fused(self, measures: Sequence[Measure]) -> dict[Measure, Answer | Failed]:
        if not measures:
            return {}
        try:
            return self._query(measures)
        except duckdb.InterruptException:
            return dict.fromkeys(measures, error("the scan took longer than its timeout"))
        except duckdb.IOException:
            raise
        except duckdb.Error as failed:
            if len(measures) == 1:
                return {measures[0]: error(_cause(failed))}
            half = len(measures) // 2
            return {**self._fused(measures[:half]), **self._fused(measures[half:])}

    def _query(self, measures: Sequence[Measure]) -> dict[Measure, Answer | Failed]:
        part = self._scan.part
        group = part.column if isinstance(part, Each) else ""
        where = f"scanned.{_quote(part.column)} = ?" if isinstance(part, One) else ""
        looked = {name: table for name, table in self._lookups.items() if isinstance(table, Source)}
        tables = {name: table.text for name, table in looked.items()}
        text = select(DIALECT, measures, source=self._source.text, tables=tables, where=where, group=group)
        values = [*self._source.parameters]
        values += [value for one in measures if one.other for value in looked[one.other].parameters]
        values += [part.value] if isinstance(part, One) else []
        rows = self._connection.execute(text, values).fetchall()
        self._scans += 1
        if not group:
            return dict(zip(measures, rows[0], strict=True))
        return {measure: {row[0]: row[place] for row in rows} for place, measure in enumerate(measures, start=1)}


def _lookup(target: Target) -> Source | Failed:
    """The rows of a table that a measure looks into."""
    if isinstance(target, Files):
        return file_source(target)
    if isinstance(target, HudiCopy):
        listed = snapshot(target.uri)
        return (
            parquet([one.path for one in listed.slices])
            if listed.slices
            else no_data("the table that is looked into has no rows")
        )
    return error("a table of a database cannot be looked into from here; bring it into the lake first")


@contextmanager
def _connection(limits: Limits) -> Iterator[duckdb.DuckDBPyConnection]:
    """A cursor of its own, interrupted when its time is over."""
    with _database(os.getpid(), limits.memory, limits.threads).cursor() as connection:
        timer = Timer(limits.timeout.total_seconds(), connection.interrupt)
        timer.daemon = True
        timer.start()
        try:
            yield connection
        finally:
            timer.cancel()


@lru_cache(maxsize=2)
def _database(process: int, memory: str, threads: int) -> duckdb.DuckDBPyConnection:
    """In memory and empty, one a process: opening one takes longer than most scans. A forked child opens its own."""
    spill = tempfile.TemporaryDirectory(prefix="lakehub-duckdb-")
    atexit.register(spill.cleanup)
    settings: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": memory,
        "threads": threads,
        "temp_directory": spill.name,
        "enable_external_file_cache": False,
    }
    database = duckdb.connect(":memory:", config=settings)
    database.execute("SET TimeZone = 'UTC'; SET lock_configuration = true")
    return database
