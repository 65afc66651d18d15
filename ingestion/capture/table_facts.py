"""A table, or many, as the catalog of its server describes them: what they are, by which keys they change, and which columns the server makes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import pymysql
import sqlalchemy as sa
from sqlalchemy.engine.interfaces import DBAPICursor
from sqlalchemy.exc import OperationalError

BASE_TABLE, VERSIONED_TABLE = "BASE TABLE", "SYSTEM VERSIONED"
MAX_LISTED = 100_000
"""Names of tables."""
_NAME = r"`(?:[^`]|``)+`"
_NAMES = rf"{_NAME}(?:, {_NAME})*"
_FOREIGN_KEY = re.compile(
    rf"^\s*CONSTRAINT (?P<name>{_NAME}) FOREIGN KEY \({_NAMES}\) REFERENCES (?P<parent>(?:{_NAME}\.)?{_NAME}) "
    rf"\({_NAMES}\)(?P<rules>(?: ON (?:DELETE|UPDATE) (?:CASCADE|RESTRICT|NO ACTION|SET NULL|SET DEFAULT))*),?$",
    re.MULTILINE,
)
_RULE = re.compile(r"ON (?:DELETE|UPDATE) (?:SET NULL|SET DEFAULT|CASCADE)")
_TEXT = re.compile(r"'(?:[^'\\]|\\.|'')*'", re.DOTALL)
_QUOTED_NAME = re.compile(r"`((?:[^`]|``)+)`")
_TABLES: sa.BindParameter[object] = sa.bindparam("tables", expanding=True)
_GENERATED = sa.text(
    "SELECT table_name, column_name, coalesce(generation_expression, column_default) FROM information_schema.columns "
    "WHERE table_schema = :database AND table_name IN :tables AND (generation_expression IS NOT NULL OR column_default LIKE '%`%')"
).bindparams(_TABLES)
_NAMES_OF_TABLES = sa.text(
    "SELECT table_name FROM information_schema.tables WHERE table_schema = :database AND table_type IN :kinds LIMIT :most"
).bindparams(sa.bindparam("kinds", expanding=True))
_KINDS_OF = sa.text(
    "SELECT table_schema, table_name, table_type, engine FROM information_schema.tables WHERE table_schema = :database AND table_name IN :tables"
).bindparams(_TABLES)

Generated: TypeAlias = Mapping[str, Mapping[str, tuple[str, ...]]]
"""By table and column that the server makes from others, or whose default it does, the names in its expression."""


@dataclass(frozen=True)
class Cascade:
    """A foreign key by which rows change when those of `parent` do. `rules`: such as ON DELETE CASCADE."""

    name: str
    parent: str
    rules: tuple[str, ...]


@dataclass(frozen=True)
class TableFacts:
    """`database` and `table` as the server writes them, `kind` and `engine` in its words. A table that is locked has no engine to be seen."""

    database: str
    table: str
    kind: str
    engine: str
    cascades: tuple[Cascade, ...] = ()
    generated: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By column that the server makes from others, or whose default it does, the names in its expression."""
    has_definition: bool = True
    """The server shows it, where the table is one."""


def read_table_facts(connection: sa.Connection, database: str, table: str) -> TableFacts | None:
    """None: the account sees no such table."""
    kinds = _read_kinds(connection, database, [table])
    facts = kinds.get(table) or next(iter(kinds.values()), None)
    if facts is None or facts.kind != BASE_TABLE:
        return facts
    _show_all_names_quoted(connection)
    definition = str(connection.exec_driver_sql(_show_create(facts)).one()[1])
    return _described(facts, definition, _read_generated(connection, database, [facts.table]))


def read_table_names(connection: sa.Connection, database: str) -> list[str]:
    """Without views and sequences; MAX_LISTED at most."""
    kinds = {"database": database, "kinds": [BASE_TABLE, VERSIONED_TABLE], "most": MAX_LISTED}
    return [str(name) for name in connection.execute(_NAMES_OF_TABLES, kinds).scalars()]


def read_facts_of_tables(connection: sa.Connection, database: str, tables: Sequence[str]) -> dict[str, TableFacts]:
    """By table, of those that the account sees; in as many queries for many as for one. Names that differ in capital letters only may come too."""
    facts = _read_kinds(connection, database, tables)
    generated = _read_generated(connection, database, tables)
    definitions = _read_create_statements(connection, [each for each in facts.values() if each.kind == BASE_TABLE])
    return {
        name: each if each.kind != BASE_TABLE else _described(each, definitions.get(name), generated)
        for name, each in facts.items()
    }


def _read_kinds(connection: sa.Connection, database: str, tables: Sequence[str]) -> dict[str, TableFacts]:
    rows = connection.execute(_KINDS_OF, {"database": database, "tables": [*tables]})
    texts = [[str(value or "") for value in row] for row in rows]
    return {table: TableFacts(owner, table, kind, engine) for owner, table, kind, engine in texts}


def _read_generated(connection: sa.Connection, database: str, tables: Sequence[str]) -> Generated:
    generated = defaultdict[str, dict[str, tuple[str, ...]]](dict)
    for table, column, expression in connection.execute(_GENERATED, {"database": database, "tables": [*tables]}):
        if names := named_columns(str(expression)):
            generated[str(table)][str(column)] = names
    return generated


def _described(facts: TableFacts, definition: str | None, generated: Generated) -> TableFacts:
    return replace(
        facts,
        cascades=tuple(cascades(definition or "")),
        generated=generated.get(facts.table, {}),
        has_definition=definition is not None,
    )


def _show_all_names_quoted(connection: sa.Connection) -> None:
    connection.exec_driver_sql("SET SESSION sql_mode = '', sql_quote_show_create = 1")


def _show_create(facts: TableFacts) -> str:
    """Its rights are those of reading; what information_schema has of foreign keys is shown to those only who may write."""
    return f"SHOW CREATE TABLE {_quoted(facts.database)}.{_quoted(facts.table)}"


def _read_create_statements(connection: sa.Connection, tables: Sequence[TableFacts]) -> dict[str, str]:
    """By table, in one block with an answer for each; those that the server cannot show, such as a broken or a locked one, are not among them."""
    if not tables:
        return {}
    _show_all_names_quoted(connection)
    shown = "".join(f"{_show_create(each)}; " for each in tables)
    block = f"BEGIN NOT ATOMIC DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END; {shown}END"
    result = connection.exec_driver_sql(block)
    return {} if result.cursor is None else {str(row[0]): str(row[1]) for row in _rows_of_all_answers(result.cursor)}


def _rows_of_all_answers(cursor: DBAPICursor) -> Iterator[Sequence[object]]:
    """Raises what SQLAlchemy raises of a first answer."""
    try:
        yield from cursor.fetchall()
        while cursor.nextset():
            if cursor.description:
                yield from cursor.fetchall()
    except pymysql.Error as problem:
        raise OperationalError("SHOW CREATE TABLE", None, problem) from problem


def _quoted(name: str) -> str:
    """As the driver takes it in a statement without parameters, whatever quotes the server had when the connection was made."""
    return f"`{name.replace('`', '``')}`".replace("%", "%%")


def named_columns(expression: str) -> tuple[str, ...]:
    """As the server writes one, with each name in quotes."""
    return tuple(match[1].replace("``", "`") for match in _QUOTED_NAME.finditer(_TEXT.sub("''", expression)))


def cascades(definition: str) -> Iterator[Cascade]:
    """`definition`: as SHOW CREATE TABLE has it."""
    for match in _FOREIGN_KEY.finditer(definition):
        if rules := tuple(_RULE.findall(match["rules"])):
            yield Cascade(match["name"], match["parent"], rules)
