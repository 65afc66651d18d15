"""DuckDB over the files that hudi-rs lists, or over plain files: small scans with no JVM."""

from __future__ import annotations

import atexit
import os
import tempfile
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import lru_cache

import duckdb

from quality.domain.expression.measures import COMMITTED, ROWS, Answer, Measure
from quality.domain.expression.values import Failed, error, no_data
from quality.domain.queries import BadQuery
from quality.engines import queries
from quality.engines.deadline import deadline
from quality.engines.duck import DuckSql, cause, quoted
from quality.engines.files import READERS, local_files, opened, parquet
from quality.engines.fusion import Answers
from quality.engines.queries import FileTable
from quality.engines.reading import Found, Reading, Source
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
    SqlTable,
    Target,
    Whole,
    of_nothing,
)
from quality.engines.select import Table
from quality.engines.slices import Snapshot, snapshot

_TRIES = 3


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
        asked = _queries(scan, _file_table(target, scan.part), limits)
        rest = _without(scan, asked)
        if asked and not rest.measures:
            return Measured(asked, scans=len(asked))
        with connected(limits) as connection, opened(connection, target, limits) as table:
            found = _read(connection, rest, table, limits)
    except duckdb.Error as failed:
        raise CannotRead(f"The files {target.glob} cannot be read: {cause(failed)}") from failed
    return Measured({**asked, **found.answers}, scans=found.scans + len(asked), groups=found.groups)


def _of_hudi(scan: Scan, target: HudiCopy, limits: Limits) -> Measured:
    """Lists and reads; lists again where a writer's cleaning took a file away in between."""
    for last in (False,) * (_TRIES - 1) + (True,):
        listed = _listed(target, scan.part)
        try:
            found = _answers(scan, listed, limits)
        except duckdb.IOException as vanished:
            if last:
                raise CannotRead(f"The files of {target.uri} cannot be read: {cause(vanished)}") from vanished
            continue
        except duckdb.Error as failed:
            raise CannotRead(f"The files of {target.uri} cannot be read: {cause(failed)}") from failed
        return Measured(found.answers, listed.instant, found.scans, found.groups)
    raise AssertionError("the last try returns or raises")


def _listed(target: HudiCopy, part: Part) -> Snapshot:
    return snapshot(target.uri, column=part.column, value=part.value) if isinstance(part, One) else snapshot(target.uri)


def _answers(scan: Scan, listed: Snapshot, limits: Limits) -> Found:
    known: Answers = {COMMITTED: listed.committed_at} if COMMITTED in scan.measures else {}
    rest = _without(scan, known)
    if not rest.measures:
        return Found(known, 0)
    if not listed.slices:
        return Found({**known, **of_nothing(rest.measures, each=isinstance(scan.part, Each) or bool(scan.by))}, 0)
    # The slices are those of the partition: nothing is left to filter.
    paths = [one.path for one in listed.slices]
    asked = _queries(rest, FileTable(READERS["parquet"], paths), limits)
    found = _of_slices(_without(rest, asked), listed, parquet(paths), limits)
    return replace(found, answers={**known, **asked, **found.answers}, scans=found.scans + len(asked))


def _without(scan: Scan, answered: Collection[Measure]) -> Scan:
    return replace(scan, measures=tuple(one for one in scan.measures if one not in answered))


def _of_slices(scan: Scan, listed: Snapshot, table: Table, limits: Limits) -> Found:
    if not scan.measures:
        return Found({}, 0)
    with connected(limits) as connection:
        if scan.measures == (ROWS,) and not scan.by:
            return Found({ROWS: _from_footers(connection, listed, scan.part)}, 0)
        part = Whole() if isinstance(scan.part, One) else scan.part
        return _read(connection, replace(scan, part=part), table, limits)


def _queries(scan: Scan, this: FileTable | Failed, limits: Limits) -> Answers:
    return {one: _query(one, scan, this, limits) for one in queries.of(scan)}


def _query(measure: Measure, scan: Scan, this: FileTable | Failed, limits: Limits) -> Answer | Failed:
    try:
        found = {name: _file_table(target, Whole()) for name, target in queries.others(measure, scan).items()}
    except BadQuery as bad:
        return error(str(bad))
    why = queries.by_group(scan) or next((one for one in (this, *found.values()) if isinstance(one, Failed)), None)
    if why is not None:
        return why
    tables = {name: table for name, table in {**found, "this": this}.items() if isinstance(table, FileTable)}
    return queries.over_files(measure, tables, limits)


def _file_table(target: Target, part: Part) -> FileTable | Failed:
    """The files of a table for a query. Raises CannotRead."""
    if isinstance(target, HudiCopy):
        paths = [one.path for one in _listed(target, part).slices]
        return FileTable(READERS["parquet"], paths) if paths else no_data("a table of the query has no rows")
    if isinstance(target, SqlTable):
        return error("a query over the lake cannot read a table of a database; bring it into the lake first")
    paths = [str(path) for path in local_files(target)]
    if target.format not in READERS or not paths:
        why = (
            "there are none on this machine"
            if target.format in READERS
            else f"write them as Parquet, not {target.format}"
        )
        return error(f"a query cannot read the files {target.glob}: {why}")
    return FileTable(READERS[target.format], paths, *((part.column, part.value) if isinstance(part, One) else ()))


def _read(connection: duckdb.DuckDBPyConnection, scan: Scan, table: Table, limits: Limits) -> Found:
    backend = DuckSql(connection)
    source = backend.source(table)
    where, parameters = "", {}
    if isinstance(scan.part, One):
        where, parameters = f"scanned.{quoted(scan.part.column)} = $part", {"part": scan.part.value}
    names = {one.other for one in scan.measures if one.other is not None}
    with ExitStack() as stack:
        tables = {name: _lookup(backend, scan.tables[name], f"other{n}", limits, stack) for n, name in enumerate(names)}
        return Reading(backend, scan, source, limits, where=where, **parameters).found(scan.measures, tables)


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


def _lookup(backend: DuckSql, target: Target, name: str, limits: Limits, stack: ExitStack) -> Source | Failed:
    """The rows of a table that a measure looks into."""
    if isinstance(target, SqlTable):
        return error("a table of a database cannot be looked into from here; bring it into the lake first")
    try:
        if isinstance(target, Files):
            return backend.source(stack.enter_context(opened(backend.connection, target, limits, name)))
        listed = snapshot(target.uri)
        if not listed.slices:
            return no_data("the table that is looked into has no rows")
        return backend.source(parquet([one.path for one in listed.slices], name))
    except duckdb.IOException:
        raise
    except (duckdb.Error, CannotRead) as failed:
        return error(f"the table that is looked into cannot be read: {cause(failed)}")


@contextmanager
def connected(limits: Limits) -> Iterator[duckdb.DuckDBPyConnection]:
    """A cursor of its own, interrupted when its time is over."""
    with (
        _database(os.getpid(), limits.memory, limits.threads).cursor() as connection,
        deadline(limits.timeout, connection.interrupt),
    ):
        yield connection


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
