"""Audits over a frame of Spark: one query for all of them, the same evaluation as of all tests, and some of the rows that break one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from ingestion.spark.etl.audits import AuditedRows, Refusal
from lakehub.catalog.metadata.tables import HudiCopy
from lakehub.kernel.outcome import Outcome
from quality.audits.checking import audit_of, is_size_of_input
from quality.domain.evaluation.evaluate import Evaluation, asks_of_expression, evaluate
from quality.domain.language import Expression
from quality.domain.language.measures import ROWS, Answer, Measure, answer_without_rows
from quality.domain.language.tree.nodes import Name
from quality.domain.language.values import EvaluationContext, Failed
from quality.engines.backends.spark_sql import measure_frame
from quality.engines.scans.parts import EachPartition, WholeTable
from quality.engines.scans.scan import Limits, Scan
from quality.engines.sql.scan_reader import ROW_KINDS

_LIMITS = Limits(timeout=timedelta(minutes=15))
_OF_NO_ROWS = (Outcome.NO_DATA, Outcome.SKIPPED)
"""So ends a share of no rows, which says nothing. Who wants rows asks for them: `rows(this) > 0`."""
_MAX_SHOWN_ROWS = 20
_MAX_PARTITIONS_SHOWN = 20
"""Of which rows are read."""


def refusals(tests: Mapping[str, str], audited: AuditedRows, *, now: datetime) -> list[Refusal]:
    """As `ingestion.spark.etl.audits.Auditor`. Each partition is judged by itself, also one that is left without rows."""
    tables = {name: frame.columns for name, frame in audited.tables.items()}
    audits = {name: audit_of(test, audited.rows.columns, tables, audited.record_key) for name, test in tests.items()}
    asks = dict.fromkeys(ask for audit in audits.values() for ask in asks_of_expression(audit))
    sizes = {ask: _size_of(audited, ask.table) for ask in asks if is_size_of_input(ask)}
    by_part = _measure(audited, tuple(dict.fromkeys((ROWS, *(ask.measure for ask in asks if ask not in sizes)))))
    moment = EvaluationContext(now)
    refused = []
    for name, audit in audits.items():
        evaluations = {
            part: evaluate(audit, {ask: sizes[ask] if ask in sizes else of_part[ask.measure] for ask in asks}, moment)
            for part, of_part in by_part.items()
        }
        failed = {part: each for part, each in evaluations.items() if not _passes(each, by_part[part][ROWS])}
        if failed:
            refused.append(_refusal(name, tests[name], audit, failed, audited))
    return refused


def _passes(evaluation: Evaluation, rows: Answer | Failed) -> bool:
    return evaluation.outcome is Outcome.PASS or (rows == 0 and evaluation.outcome in _OF_NO_ROWS)


_Answers = Mapping[Measure, Answer | Failed]


def _measure(audited: AuditedRows, measures: tuple[Measure, ...]) -> dict[str | None, _Answers]:
    """By partition, or under None."""
    part = WholeTable() if audited.partition_column is None else EachPartition(audited.partition_column)
    answers = _ask(audited, Scan(_NOWHERE, measures, part))
    if audited.partition_column is None:
        return {None: answers}
    sizes = answers[ROWS]
    if not isinstance(sizes, Mapping):  # what cannot be counted passes nothing
        return {None: answers}
    names = {*sizes, *(audited.partitions or ())} or {None}
    return {name: {measure: _of_partition(measure, answers[measure], name) for measure in measures} for name in names}


def _of_partition(measure: Measure, answer: Answer | Failed, name: str | None) -> Answer | Failed:
    if not isinstance(answer, Mapping):
        return answer
    of_partition: Answer = answer.get(name, answer_without_rows(measure))
    return of_partition


def _ask(audited: AuditedRows, scan: Scan) -> _Answers:
    names = {measure.other for measure in scan.measures if measure.other is not None}
    tables: dict[Name, Any] = {name: _input(audited, name) for name in names}
    return measure_frame(audited.rows, scan, tables, _LIMITS).answers


_NOWHERE = HudiCopy("")
"""The rows are in no table yet."""


def _input(audited: AuditedRows, name: Name) -> Any:
    spelt = {known.casefold(): frame for known, frame in audited.tables.items()}
    return spelt[name.dataset.casefold()]


def _size_of(audited: AuditedRows, table: Name) -> int:
    return int(_input(audited, table).count())


def _refusal(
    name: str, test: str, audit: Expression, failed: Mapping[str | None, Evaluation], audited: AuditedRows
) -> Refusal:
    order = sorted(
        failed, key=lambda part: (failed[part].outcome is not Outcome.ERROR, -failed[part].failure_margin, part or "")
    )
    worst = failed[order[0]]
    columns, rows = _reasons(audit, [part for part in order if part is not None], audited)
    parts = tuple(part for part in order if part is not None)
    return Refusal(name, test, parts, worst.observed_text, worst.threshold, worst.cause, columns, rows)


def _reasons(
    audit: Expression, partitions: Sequence[str], audited: AuditedRows
) -> tuple[tuple[str, ...], tuple[tuple[str | None, ...], ...]]:
    """Of the first measure that counts rows and has some: their keys and the columns that it is about."""
    column = audited.partition_column
    rows = (
        audited.rows
        if column is None
        else audited.rows.where(audited.rows[column].isin(*partitions[:_MAX_PARTITIONS_SHOWN]))
    )
    for measure in _row_measures(audit):
        shown = tuple(dict.fromkeys((*audited.record_key, *measure.columns)))
        listing = replace(measure, shown=shown)
        answer = _ask(replace(audited, rows=rows), Scan(_NOWHERE, (listing,)))[listing]
        if isinstance(answer, Mapping) and answer.get("rows"):
            return tuple(answer["columns"]), tuple(tuple(row) for row in answer["rows"][:_MAX_SHOWN_ROWS])
    return (), ()


def _row_measures(audit: Expression) -> Iterator[Measure]:
    return (ask.measure for ask in asks_of_expression(audit) if ask.measure.kind in ROW_KINDS)
