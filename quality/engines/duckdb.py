"""DuckDB over the files that hudi-rs lists, or over plain files: small scans with no JVM."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

import duckdb

from lakehub.catalog.metadata.damaged_files import explain_damage
from lakehub.catalog.metadata.tables import Files, HudiCopy, StoredTable
from lakehub.user_sql import BadQuery
from quality.domain.language.measures import LAST_COMMIT, ROWS, Answer, Measure
from quality.domain.language.values import Failed, error, no_data
from quality.engines import Engine
from quality.engines.backends.duckdb_files import (
    TABLE_FUNCTIONS,
    count_rows,
    open_connection,
    open_files,
    parquet_table,
    table_function,
)
from quality.engines.backends.duckdb_sql import DuckDbBackend, error_line, partition_literal_sql
from quality.engines.endpoints.duckdb import open_endpoint
from quality.engines.endpoints.duckdb_rows import open_row_endpoint
from quality.engines.scans.endpoint import Endpoint
from quality.engines.scans.parts import CannotRead, EachPartition, OnePartition, Part, WholeTable
from quality.engines.scans.row_endpoint import RowEndpoint
from quality.engines.scans.scan import Limits, Scan, ScanAnswers, answers_without_rows
from quality.engines.sql.fused_query import MeasureAnswers
from quality.engines.sql.measure_sql import TableExpression
from quality.engines.sql.partition_filter import partition_where
from quality.engines.sql.scan_reader import ReadableTable, ReaderAnswers, ScanReader
from quality.engines.storage import damaged_tables, hudi_snapshot
from quality.engines.storage.hudi_snapshot import FileSlice, TableSnapshot, read_part, read_snapshot
from quality.engines.storage.plain_files import files_version, local_files
from quality.engines.user_sql import user_queries
from quality.engines.user_sql.user_queries import FileTable

_MAX_ATTEMPTS = 3


class DuckDbEngine(Engine):
    """A cursor of its own for each scan, with limits that are locked."""

    reads = (HudiCopy, Files)

    def measure(self, scan: Scan, limits: Limits) -> ScanAnswers:
        table = _readable(scan.target)
        return (
            _measure_hudi(scan, table, limits) if isinstance(table, HudiCopy) else _measure_files(scan, table, limits)
        )

    def part_states(self, table: StoredTable, parts: Collection[Part]) -> Mapping[Part, str]:
        """Of a Hudi table it is the files of each part; of files their names, sizes and times."""
        table = _readable(table)
        if isinstance(table, HudiCopy):
            return hudi_snapshot.part_states(table.uri, parts)
        version = files_version(table)
        return dict.fromkeys(parts, version) if version else {}

    def partition_states(self, table: StoredTable) -> Mapping[str, str] | None:
        """By the values of the partitions as they are stored."""
        return hudi_snapshot.partition_states(table.uri) if isinstance(table, HudiCopy) else None

    def endpoint(self, table: StoredTable, part: Part, columns: Sequence[str], limits: Limits) -> Endpoint:
        return open_endpoint(_readable(table), part, columns, limits)

    def row_endpoint(self, table: StoredTable, part: Part, limits: Limits) -> RowEndpoint:
        return open_row_endpoint(_readable(table), part, limits)


def _readable(table: StoredTable) -> HudiCopy | Files:
    if isinstance(table, HudiCopy | Files):
        return table
    raise CannotRead("DuckDB reads Hudi tables and files; for a table of a database choose engine=sqlalchemy.")


def _measure_files(scan: Scan, target: Files, limits: Limits) -> ScanAnswers:
    try:
        query_answers = (
            _run_user_queries(scan, _file_table(target, scan.part, limits), limits)
            if any(measure.is_query for measure in scan.measures)
            else {}
        )
        rest = _without_answered(scan, query_answers)
        if query_answers and not rest.measures:
            return ScanAnswers(query_answers, scan_count=len(query_answers))
        with open_connection(limits) as connection, open_files(connection, target, limits) as table:
            reader_answers = _read_table(connection, rest, table, limits)
    except duckdb.Error as failed:
        raise CannotRead(explain_damage(failed, local_files(target), shown=f"The files {target.glob}")) from failed
    return ScanAnswers(
        {**query_answers, **reader_answers.answers},
        scan_count=reader_answers.scan_count + len(query_answers),
        group_count=reader_answers.group_count,
    )


def _measure_hudi(scan: Scan, target: HudiCopy, limits: Limits) -> ScanAnswers:
    """Lists and reads; lists again where a writer's cleaning took a file away in between."""
    for last in (False,) * (_MAX_ATTEMPTS - 1) + (True,):
        listed = read_part(target.uri, scan.part)
        try:
            reader_answers = _answer_hudi(scan, listed, limits)
        except duckdb.IOException as vanished:
            if last:
                raise CannotRead(_explain_slices(vanished, listed, target)) from vanished
            continue
        except duckdb.Error as failed:
            raise CannotRead(_explain_slices(failed, listed, target)) from failed
        return ScanAnswers(
            reader_answers.answers, listed.instant, reader_answers.scan_count, reader_answers.group_count
        )
    raise AssertionError("the last try returns or raises")


def _explain_slices(failed: duckdb.Error, listed: TableSnapshot, target: HudiCopy) -> str:
    paths = [file_slice.path for file_slice in listed.slices]
    return explain_damage(failed, paths, shown=f"The files of {target.uri}", remedy=damaged_tables.REMEDY)


def _answer_hudi(scan: Scan, listed: TableSnapshot, limits: Limits) -> ReaderAnswers:
    commit_answers: MeasureAnswers = {LAST_COMMIT: listed.committed_at} if LAST_COMMIT in scan.measures else {}
    rest = _without_answered(scan, commit_answers)
    if not rest.measures:
        return ReaderAnswers(commit_answers, 0)
    if not listed.slices:
        return ReaderAnswers(
            {
                **commit_answers,
                **answers_without_rows(
                    rest.measures, grouped=isinstance(scan.part, EachPartition) or bool(scan.group_by)
                ),
            },
            0,
        )
    query_answers = (
        _run_user_queries(rest, _slices_table(listed.slices, scan.part, limits), limits)
        if any(measure.is_query for measure in rest.measures)
        else {}
    )
    reader_answers = _read_slices(_without_answered(rest, query_answers), listed.slices, limits)
    return replace(
        reader_answers,
        answers={**commit_answers, **query_answers, **reader_answers.answers},
        scan_count=reader_answers.scan_count + len(query_answers),
    )


def _slices_table(slices: Sequence[FileSlice], part: Part, limits: Limits) -> FileTable:
    """The files for a query; where they are listed by partition nothing is left to filter."""
    paths = [file_slice.path for file_slice in slices]
    if not isinstance(part, OnePartition) or part.form is None:
        return FileTable(TABLE_FUNCTIONS["parquet"], paths)
    with open_connection(limits) as connection:
        columns = DuckDbBackend(connection).source(parquet_table(paths)).columns
    return FileTable(TABLE_FUNCTIONS["parquet"], paths, partition_literal_sql(part, columns))


def _without_answered(scan: Scan, answered: Collection[Measure]) -> Scan:
    return replace(scan, measures=tuple(measure for measure in scan.measures if measure not in answered))


def _read_slices(scan: Scan, slices: Sequence[FileSlice], limits: Limits) -> ReaderAnswers:
    if not scan.measures:
        return ReaderAnswers({}, 0)
    with open_connection(limits) as connection:
        is_listed = isinstance(scan.part, WholeTable) or scan.part.form is None
        if scan.measures == (ROWS,) and not scan.group_by and is_listed:
            each = scan.part if isinstance(scan.part, EachPartition) else None
            return ReaderAnswers({ROWS: count_rows(connection, slices, each)}, 0)
        part = WholeTable() if isinstance(scan.part, OnePartition) and is_listed else scan.part
        table = parquet_table([file_slice.path for file_slice in slices])
        return _read_table(connection, replace(scan, part=part), table, limits)


def _run_user_queries(scan: Scan, this: FileTable | Failed, limits: Limits) -> MeasureAnswers:
    return {measure: _run_user_query(measure, scan, this, limits) for measure in scan.measures if measure.is_query}


def _run_user_query(measure: Measure, scan: Scan, this: FileTable | Failed, limits: Limits) -> Answer | Failed:
    try:
        named_tables = {
            name: _file_table(target, WholeTable(), limits)
            for name, target in user_queries.query_tables(measure, scan).items()
        }
    except BadQuery as bad:
        return error(str(bad))
    why = user_queries.grouping_failure(scan) or next(
        (table for table in (this, *named_tables.values()) if isinstance(table, Failed)), None
    )
    if why is not None:
        return why
    tables = {name: table for name, table in {**named_tables, "this": this}.items() if isinstance(table, FileTable)}
    return user_queries.run_over_files(measure, tables, limits)


def _file_table(target: StoredTable, part: Part, limits: Limits) -> FileTable | Failed:
    """The files of a table for a query. Raises CannotRead."""
    if isinstance(target, HudiCopy):
        paths = [file_slice.path for file_slice in read_part(target.uri, part).slices]
        return FileTable(TABLE_FUNCTIONS["parquet"], paths) if paths else no_data("a table of the query has no rows")
    if not isinstance(target, Files):
        return error("a query over the lake cannot read a table of a database; bring it into the lake first")
    paths = [str(path) for path in local_files(target)]
    if target.format not in TABLE_FUNCTIONS or not paths:
        why = (
            "there are none on this machine"
            if target.format in TABLE_FUNCTIONS
            else f"write them as Parquet, not {target.format}"
        )
        return error(f"a query cannot read the files {target.glob}: {why}")
    with open_connection(limits) as connection, open_files(connection, target, limits) as table:
        columns = DuckDbBackend(connection).source(table).columns
        where = partition_literal_sql(part, columns) if isinstance(part, OnePartition) else ""
        return FileTable(table_function(connection, target), paths, where)


def _read_table(
    connection: duckdb.DuckDBPyConnection, scan: Scan, table: TableExpression, limits: Limits
) -> ReaderAnswers:
    backend = DuckDbBackend(connection)
    source = backend.source(table)
    where, parameters = "", dict[str, object]()
    if isinstance(scan.part, OnePartition):
        where, bound = partition_where(scan.part, backend.dialect, source.columns)
        parameters |= bound
    names = {measure.other for measure in scan.measures if measure.other is not None}
    with ExitStack() as stack:
        tables = {
            name: _lookup_table(backend, scan.other_tables[name], f"other{n}", limits, stack)
            for n, name in enumerate(names)
        }
        return ScanReader(backend, scan, source, limits, where=where, **parameters).answer(scan.measures, tables)


def _lookup_table(
    backend: DuckDbBackend, target: StoredTable, name: str, limits: Limits, stack: ExitStack
) -> ReadableTable | Failed:
    """The rows of a table that a measure looks into."""
    if not isinstance(target, HudiCopy | Files):
        return error("a table of a database cannot be looked into from here; bring it into the lake first")
    try:
        if isinstance(target, Files):
            return backend.source(stack.enter_context(open_files(backend.connection, target, limits, name)))
        listed = read_snapshot(target.uri)
        if not listed.slices:
            return no_data("the table that is looked into has no rows")
        return backend.source(parquet_table([file_slice.path for file_slice in listed.slices], name))
    except duckdb.IOException:
        raise
    except (duckdb.Error, CannotRead) as failed:
        return error(f"the table that is looked into cannot be read: {error_line(failed)}")
