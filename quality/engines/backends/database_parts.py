"""Which rows of a table of a database are those of a part, as SQLAlchemy selects them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from quality.engines.backends.database_dialects import column_type_of, dialect_of
from quality.engines.scans.parts import OnePartition, Part
from quality.engines.sql.partition_filter import partition_comparisons


def rows_of_part(statement: sa.Select[Any], table: sa.Table, part: Part, connection: sa.Connection) -> sa.Select[Any]:
    """Of what is selected the rows of the part. Raises CannotRead."""
    if not isinstance(part, OnePartition):
        return statement
    kinds = {column.name: column_type_of(column.type) for column in table.columns}
    bound = dialect_of(connection).bound
    alternatives = (
        sa.and_(
            *(
                table.columns[comparison.column].op(comparison.operator, is_comparison=True)(
                    _bound(bound(comparison.value)) if isinstance(comparison.value, datetime) else comparison.value
                )
                for comparison in comparisons
            )
        )
        for comparisons in partition_comparisons(part, kinds)
    )
    return statement.where(sa.or_(*alternatives))


def _bound(time: str | datetime) -> str | datetime | sa.BindParameter[str]:
    """A text is compared as it is, and not written again as a time of the column's type."""
    return sa.literal(time, sa.String()) if isinstance(time, str) else time
