"""Spark over Hudi's own reader: the engine for what does not fit one machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from lakehub.catalog.metadata.tables import HudiCopy, StoredTable
from lakehub.user_sql import BadQuery
from quality.domain.language.measures import LAST_COMMIT, Answer, Measure
from quality.domain.language.values import Failed, error
from quality.engines import Engine
from quality.engines.backends.spark_sql import measure_frame, run_user_query
from quality.engines.endpoints.spark import open_endpoint
from quality.engines.endpoints.spark_rows import open_row_endpoint
from quality.engines.scans.endpoint import Endpoint
from quality.engines.scans.parts import CannotRead, EachPartition, Part
from quality.engines.scans.row_endpoint import RowEndpoint
from quality.engines.scans.scan import Limits, Scan, ScanAnswers, answers_without_rows
from quality.engines.storage.hudi_snapshot import read_snapshot
from quality.engines.user_sql import user_queries
from quality.spark.session import quality_session


class SparkEngine(Engine):
    reads = (HudiCopy,)
    fits_requests = False

    def __init__(self, session: Callable[[], SparkSession] = quality_session) -> None:
        self._session = session

    def measure(self, scan: Scan, limits: Limits) -> ScanAnswers:
        table = _readable(scan.target)
        spark = self._session()
        # Listed before it is read: the rows are at least as new as the commit that is named.
        listed = read_snapshot(table.uri, logs=True)
        commit_answers: dict[Measure, Answer | Failed] = (
            {LAST_COMMIT: listed.committed_at} if LAST_COMMIT in scan.measures else {}
        )
        rest = tuple(measure for measure in scan.measures if measure != LAST_COMMIT)
        if not listed.slices:
            nothing = answers_without_rows(rest, grouped=isinstance(scan.part, EachPartition) or bool(scan.group_by))
            return ScanAnswers({**commit_answers, **nothing}, listed.instant, 0)
        frame = _read_frame(spark, table)
        query_answers = {
            measure: self._query(frame, measure, scan, limits) for measure in scan.measures if measure.is_query
        }
        rest = tuple(measure for measure in rest if measure not in query_answers)
        if not rest:
            return ScanAnswers({**commit_answers, **query_answers}, listed.instant, len(query_answers))
        names = {measure.other for measure in rest if measure.other is not None}
        tables = {name: _lookup_frame(spark, scan.other_tables[name]) for name in names}
        reader_answers = measure_frame(frame, replace(scan, measures=rest), tables, limits)
        return ScanAnswers(
            {**commit_answers, **query_answers, **reader_answers.answers},
            listed.instant,
            reader_answers.scan_count + len(query_answers),
            reader_answers.group_count,
        )

    def endpoint(self, table: StoredTable, part: Part, columns: Sequence[str], limits: Limits) -> Endpoint:
        return open_endpoint(_readable(table), part, columns, limits)

    def row_endpoint(self, table: StoredTable, part: Part, limits: Limits) -> RowEndpoint:
        return open_row_endpoint(_readable(table), part, limits)

    def _query(self, frame: DataFrame, measure: Measure, scan: Scan, limits: Limits) -> Answer | Failed:
        try:
            named = user_queries.query_tables(measure, scan)
            tables = {name: _read_frame(frame.sparkSession, target) for name, target in named.items()}
        except (BadQuery, CannotRead) as bad:
            return error(str(bad))
        return run_user_query(frame, measure, scan, tables, limits)


def _readable(table: StoredTable) -> HudiCopy:
    if isinstance(table, HudiCopy):
        return table
    raise CannotRead(
        "Spark reads Hudi tables here; for files choose engine=duckdb, for a table of a database engine=sqlalchemy."
    )


def _lookup_frame(spark: SparkSession, target: StoredTable) -> DataFrame | Failed:
    try:
        return _read_frame(spark, target)
    except CannotRead as failed:
        return error(str(failed))


def _read_frame(spark: SparkSession, target: StoredTable) -> DataFrame:
    if not isinstance(target, HudiCopy):
        raise CannotRead("Spark looks into Hudi tables only; bring the other table into the lake first.")
    return spark.read.format("hudi").load(target.uri)
