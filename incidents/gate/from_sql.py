"""The gate asked with a query: the datasets and the ranges that it reads, each of them a question. Nothing of it is run."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from incidents.domain.gate.sql_bounds import TableShape
from incidents.domain.gate.sql_names import UnsupportedSql
from incidents.domain.gate.sql_reads import TableReads, parse_query, row_functions, tables_read
from incidents.domain.gate.sql_times import QueryClock
from incidents.gate import copies
from incidents.gate.answer import CopyQuestion, ResolvedQuestion
from lakehub.catalog.metadata import ColumnType
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import NotFound, Refused
from lakehub.kernel.suggest import MAX_HINTS, did_you_mean

MAX_QUESTIONS = 200


@dataclass(frozen=True)
class QueryQuestions:
    """What a query asks: the questions, what each dataset is read over and why, and the tables that were left out."""

    asked: list[ResolvedQuestion]
    reads: list[TableReads]
    skipped_tables: list[str]


def questions_of_query(
    sql: str,
    *,
    dialect: str,
    consumer: str,
    now: datetime,
    data_center: str = "",
    zone: ZoneInfo | None = None,
    leave_out: Collection[str] = (),
    request_id: str = "",
) -> QueryQuestions:
    """`zone` is that of the session that runs it. Raises Refused where the text cannot be understood, NotFound for a table
    that is no dataset, unless it is one to `leave_out`.
    """
    try:
        query = parse_query(sql, dialect)
    except UnsupportedSql as problem:
        raise Refused.for_fields({"sql": str(problem)}) from None
    names, called = {name.lower() for name in query.names}, query.functions
    lowered = {name.lower() for name in leave_out}
    skipped = lowered & (names | called | query.possible_names)
    _check_no_unknown_functions(called - skipped)
    asked_names = (names | _live_datasets(query.possible_names - names)) - skipped
    known_copies = copies.find_copies(asked_names, consumer, now=now)
    _check_all_known(asked_names - set(known_copies))
    remaining_query = query.without(skipped)
    shapes = {row.name: _table_shape(row, dialect) for row in Dataset.objects.filter(name__in=known_copies)}
    row_calls = row_functions(query, shapes, skipped)
    _check_no_row_functions(row_calls - lowered)
    skipped |= lowered & row_calls
    reads = tables_read(remaining_query, shapes, QueryClock(now, zone)) if shapes else []
    questions = []
    for table_reads in reads:
        copy = copies.choose_copy(table_reads.dataset, data_center, known_copies)
        center = copy.copy.data_center.name
        questions += [
            ResolvedQuestion(CopyQuestion(table_reads.dataset, piece, consumer, center, request_id), copy)
            for piece in table_reads.ranges
        ]
    if len(questions) > MAX_QUESTIONS:
        raise Refused.for_fields({"sql": f"The query reads {len(questions)} ranges: {MAX_QUESTIONS} at most."})
    return QueryQuestions(questions, reads, sorted(skipped))


def _live_datasets(names: Collection[str]) -> set[str]:
    if not names:
        return set()
    return set(Dataset.objects.filter(name__in=names, offboarded_at=None).values_list("name", flat=True))


def _check_no_unknown_functions(functions: Collection[str]) -> None:
    if functions:
        named = " ".join(f"`{name[:60]}`" for name in sorted(functions)[:10])
        raise Refused.for_fields(
            {"sql": f"The query calls what may read any table: {named}. Nobody vouches for it: name it in `leave_out`."}
        )


def _check_no_row_functions(names: Collection[str]) -> None:
    if names:
        named = " ".join(f"`.{name[:60]}`" for name in sorted(names)[:10])
        raise Refused.for_fields(
            {
                "sql": f"The query has {named} behind a name that is not known to have such a column: in this SQL that calls a function, "
                "which may read any table. Write columns without the name of their table, or name it in `leave_out`."
            }
        )


def _check_all_known(missing: Collection[str]) -> None:
    if missing:
        live = list(Dataset.objects.filter(offboarded_at=None).values_list("name", flat=True)[:1000])
        names = sorted(missing)
        hints = [f"`{name}`{did_you_mean(name, live)}" for name in names[:MAX_HINTS]]
        hints += [f"`{name}`" for name in names[MAX_HINTS:]]
        raise NotFound(
            f"The query reads what is no dataset here: {' '.join(hints)}. Nobody vouches for it: onboard it, or name it in "
            "`leave_out`."
        )


def _table_shape(dataset: Dataset, dialect: str) -> TableShape:
    """A time column that holds numbers, or that has another beside it that differs in capitals only, bounds nothing. Nor do texts,
    which compare letter by letter, but for SQLite's, which has no other times.
    """
    unlike_times = _NUMBERS if dialect == "sqlite" else {*_NUMBERS, ColumnType.STRING}
    names = [column["name"].lower() for column in dataset.columns]
    types = {column["name"].lower(): column.get("type", "") for column in dataset.columns}
    unlike = {name for name, kind in types.items() if kind in unlike_times}
    columns = frozenset(names) or None
    form, lake_column = dataset.source_form, dataset.lake_partition_column if dataset.ingested else ""
    ours = lake_column if lake_column != dataset.partition_column else ""
    event_time, partition = (
        "" if names.count(name.lower()) > 1 else name for name in (dataset.event_time, dataset.partition_column)
    )
    return TableShape(
        partition,
        dataset.partition_grain,
        dataset.zone,
        "" if event_time.lower() in unlike else event_time,
        columns | {ours.lower()} if columns and ours else columns,
        form,
        ours,
        {ColumnType.STRING: False, **dict.fromkeys(_NUMBERS, True)}.get(types.get(partition.lower(), "")),
        types.get(event_time.lower()) not in (ColumnType.TIMESTAMP, ColumnType.STRING),
    )


_NUMBERS = frozenset({ColumnType.INTEGER, ColumnType.FLOAT, ColumnType.DECIMAL})
