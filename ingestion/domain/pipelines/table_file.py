"""`table.sql`: one CREATE TABLE with the target's columns."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from ingestion.domain.column_types import UnknownType
from ingestion.domain.pipelines.problems import Problem
from ingestion.domain.schema import Schema, SchemaColumn
from lakehub.kernel.lake_names import names_unfit_for_the_lake, unfit_names_text
from lakehub.user_sql.sql_text import UnreadableSql, parse_statements

TABLE_FILE = "table.sql"
_TYPE_WORDS = {"bigint": "long", "smallint": "int", "tinyint": "int", "integer": "int", "varchar": "string"}
_WHOLE_DECIMAL = re.compile(r"(?<!`)\bdecimal\b(?:\((\d+)\))?(?!\s*[(:`])")
"""As SQL has it: without digits behind the point, of 10 digits if it does not say of how many."""
_IN_PARSER_ERROR = re.compile(r"line (\d+), column \d+: (.*)", re.DOTALL)


def read_table_file(text: str, problems: list[Problem]) -> Schema:
    """The columns. What is wrong is added to `problems`."""
    try:
        statements = parse_statements(text, "spark")
    except UnreadableSql as unreadable:
        problems.append(parser_problem(TABLE_FILE, unreadable))
        return Schema(())
    is_table = len(statements) == 1 and isinstance(statements[0], exp.Create) and statements[0].kind == "TABLE"
    body = statements[0].this if is_table else None
    definitions = (
        [each for each in body.expressions if isinstance(each, exp.ColumnDef)] if isinstance(body, exp.Schema) else []
    )
    if not definitions:
        problems.append(
            Problem(TABLE_FILE, 0, "Write one `CREATE TABLE name (column type, ...)` with the columns of the target.")
        )
        return Schema(())
    columns = [column for each in definitions if (column := _column(each, problems)) is not None]
    problems += _name_problems([column.name for column in columns])
    return Schema(tuple({column.name: column for column in columns}.values()))


def partitioned_by(text: str) -> tuple[str, ...]:
    """What PARTITIONED BY names; empty: there is none, or the text cannot be read, which is said by others."""
    try:
        statements = parse_statements(text, "spark")
    except UnreadableSql:
        return ()
    declared = statements[0].find(exp.PartitionedByProperty) if statements else None
    if declared is None:
        return ()
    return tuple(
        each.name if isinstance(each, exp.Identifier | exp.ColumnDef) else each.sql("spark")
        for each in declared.this.expressions
    )


def parser_problem(file: str, unreadable: UnreadableSql) -> Problem:
    """With the line that the parser names, where it names one."""
    located = _IN_PARSER_ERROR.match(str(unreadable))
    line, reason = (int(located[1]), located[2]) if located else (0, str(unreadable))
    return Problem(file, line, f"The SQL cannot be read: {reason}.")


def _column(definition: exp.ColumnDef, problems: list[Problem]) -> SchemaColumn | None:
    line = line_of(definition)
    if definition.kind is None:
        problems.append(Problem(TABLE_FILE, line, f"The column `{definition.name}` has no type."))
        return None
    type_ = re.sub(r"\w+", lambda word: _TYPE_WORDS.get(word[0], word[0]), definition.kind.sql("spark").lower())
    type_ = _WHOLE_DECIMAL.sub(lambda match: f"decimal({match[1] or 10},0)", type_)
    try:
        return SchemaColumn(definition.name, type_.replace(", ", ",").replace(": ", ":"))
    except UnknownType as unknown:
        problems.append(Problem(TABLE_FILE, line, str(unknown)))
        return None


def _name_problems(names: list[str]) -> Iterator[Problem]:
    if unfit := (*names_unfit_for_the_lake(names),):
        yield Problem(TABLE_FILE, 0, unfit_names_text(unfit))
    spelt = [name.casefold() for name in names]
    for name in dict.fromkeys(name for name in names if spelt.count(name.casefold()) > 1):
        yield Problem(TABLE_FILE, 0, f"The column `{name}` is there more than once.")


def line_of(node: exp.Expr) -> int:
    """Of the first word in it whose place the parser has kept; 0: none."""
    return next((each.meta["line"] for each in node.walk() if "line" in each.meta), 0)
