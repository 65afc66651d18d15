"""A person's query over SQLite, in a confined process: SQLite runs in the process that asks it, with all its rights and memory."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import Dialect

from quality.domain.language.measures import Answer
from quality.domain.language.values import Failed, error
from quality.engines.scans.scan import Limits
from quality.engines.user_sql.child_process import encode_value
from quality.engines.user_sql.confinement import limits_of_child, run_confined


def run_over_sqlite(
    connection: sa.Connection,
    statement: sa.TextClause,
    *,
    tables: Collection[str],
    defined_names: Collection[str],
    limits: Limits,
) -> Answer | Failed:
    """The one number of a statement that reads `tables`, each written as SQL has it, over the file of the connection.

    `defined_names` are those that the statement gives to what it reads itself.
    """
    path = connection.engine.url.database
    if not path or connection.engine.url.query:
        return error("a query over SQLite needs a URL that names a file and nothing else: sqlite:////path/file.db")
    compiled = statement.compile(dialect=connection.dialect)
    request = {
        "path": path,
        "sql": str(compiled),
        "parameters": [
            encode_value(_stored_value(statement, name, compiled.params[name], connection.dialect))
            for name in compiled.positiontup or ()
        ],
        "tables": list(tables),
        "defined_names": list(defined_names),
        **limits_of_child(limits),
    }
    return run_confined("quality.engines.user_sql.sqlite_sandbox", request)


def _stored_value(statement: sa.TextClause, name: str, value: object, dialect: Dialect) -> Any:
    """A time or a decimal as SQLite stores it."""
    process = statement._bindparams[name].type.dialect_impl(dialect).bind_processor(dialect)
    return process(value) if process is not None else value
