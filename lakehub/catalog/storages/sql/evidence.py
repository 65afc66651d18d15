"""How well a key holds in a table of a database: all of its rows, or of a large one a sample that costs no scan of the whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from lakehub.catalog.metadata import EVIDENCE_LIMIT, SAMPLE_ROWS, SAMPLE_SEED, Drawn, KeyEvidence


def read_key_evidence(connection: sa.Connection, schema: str | None, name: str, key: Sequence[str]) -> KeyEvidence:
    table = sa.table(name, *(sa.column(part) for part in dict.fromkeys(key)), schema=schema)
    if not _is_large(connection, table):
        return _evidence_of(connection, sa.select(*(table.c[part] for part in key)), key, Drawn.ALL, None)
    total = _estimated_rows(connection, schema, name)
    if total:
        sample = sa.tablesample(table, sa.func.system(_percent(total)), seed=sa.text(str(SAMPLE_SEED)))
        rows = sa.select(*(sample.c[part] for part in key)).limit(2 * SAMPLE_ROWS)
        return _evidence_of(connection, rows, key, Drawn.BY_BLOCK, total)
    first = sa.select(*(table.c[part] for part in key)).limit(SAMPLE_ROWS)
    return _evidence_of(connection, first, key, Drawn.FIRST, None)


def _is_large(connection: sa.Connection, table: sa.TableClause) -> bool:
    """Counts no further than that."""
    some = sa.select(sa.literal(1).label("one")).select_from(table).limit(EVIDENCE_LIMIT + 1).subquery()
    return int(connection.execute(sa.select(sa.func.count()).select_from(some)).scalar_one()) > EVIDENCE_LIMIT


def _estimated_rows(connection: sa.Connection, schema: str | None, name: str) -> int:
    """By the statistics of PostgreSQL, which alone draws samples by block; 0 where they do not know, or it is another database."""
    if connection.dialect.name != "postgresql":
        return 0
    quoted = connection.dialect.identifier_preparer.quote
    named = ".".join(quoted(part) for part in (schema, name) if part)
    statement = sa.text(
        "SELECT CAST(reltuples AS BIGINT) FROM pg_class WHERE oid = to_regclass(:named) AND relkind IN ('r', 'm')"
    )
    return max(0, int(connection.execute(statement, {"named": named}).scalar() or 0))


def _percent(total: int) -> float:
    return min(100.0, round(100 * SAMPLE_ROWS / total, 6))


def _evidence_of(
    connection: sa.Connection, rows: sa.Select[Any], key: Sequence[str], drawn: Drawn, total: int | None
) -> KeyEvidence:
    """One scan for the counts, and one for the keys."""
    some = rows.subquery()
    columns = [some.c[part] for part in key]
    whole = sa.and_(*(column.is_not(None) for column in columns))
    distinct = sa.select(sa.func.count()).select_from(sa.select(*columns).where(whole).distinct().subquery())
    counts = (sa.func.count(), _count_where(whole), *(_count_where(column.is_(None)) for column in columns))
    read, full, *nulls = (int(count) for count in connection.execute(sa.select(*counts).select_from(some)).one())
    return KeyEvidence(
        rows=read,
        distinct=int(connection.execute(distinct).scalar_one()),
        nulls=read - full,
        null_columns={part: count for part, count in zip(key, nulls, strict=True) if count},
        drawn=drawn,
        total=total,
    )


def _count_where(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
    return sa.func.coalesce(sa.func.sum(sa.case((condition, 1), else_=0)), 0)
