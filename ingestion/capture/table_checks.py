"""Can a table be captured? What changes its rows without a row in the binlog, or writes there what is no row of it, and what to do about each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import sqlalchemy as sa

_TRANSACTIONAL = frozenset({"INNODB", "ROCKSDB"})
_TABLE, _VERSIONED = "BASE TABLE", "SYSTEM VERSIONED"
_KINDS = {"VIEW": "a view", "SYSTEM VIEW": "a view of the server", "SEQUENCE": "a sequence", "TEMPORARY": "temporary"}
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
_GENERATED = sa.text(
    "SELECT column_name, generation_expression FROM information_schema.columns "
    "WHERE table_schema = :database AND table_name = :table AND generation_expression IS NOT NULL"
)
_BY_CURSOR = "Load it by its cursor column, from a connection with the plug-in `sql`"
_KIND = sa.text(
    "SELECT table_schema, table_name, table_type, engine FROM information_schema.tables WHERE table_schema = :database AND table_name = :table"
)


@dataclass(frozen=True)
class Cascade:
    """A foreign key by which rows change when those of `parent` do. `rules`: such as ON DELETE CASCADE."""

    name: str
    parent: str
    rules: tuple[str, ...]


@dataclass(frozen=True)
class TableFacts:
    """`database` and `table` as the server writes them, `kind` and `engine` in its words."""

    database: str
    table: str
    kind: str
    engine: str
    cascades: tuple[Cascade, ...] = ()
    generated: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By column that the server makes from others, the names in its expression."""


def read_table_facts(connection: sa.Connection, database: str, table: str) -> TableFacts | None:
    """None: the account sees no such table."""
    named = {"database": database, "table": table}
    row = connection.execute(_KIND, named).first()
    if row is None:
        return None
    database, table, kind, engine = (str(value or "") for value in row)
    facts = TableFacts(database, table, kind, engine)
    if kind != _TABLE:
        return facts
    # Its rights are those of reading; what information_schema has of foreign keys is shown to those only who may write.
    connection.exec_driver_sql("SET SESSION sql_mode = '', sql_quote_show_create = 1")
    definition = str(connection.exec_driver_sql(f"SHOW CREATE TABLE {_quoted(database)}.{_quoted(table)}").one()[1])
    expressions = {str(name): str(expression) for name, expression in connection.execute(_GENERATED, named)}
    generated = {name: named_columns(expression) for name, expression in expressions.items()}
    return TableFacts(database, table, kind, engine, tuple(cascades(definition)), generated)


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


def table_problems(facts: TableFacts, database: str, table: str) -> list[str]:
    """`database` and `table`: as the dataset names them. Empty: it can be captured."""
    return [*_problems(facts, database, table)]


def _problems(facts: TableFacts, database: str, table: str) -> Iterator[str]:
    owner = f"The table `{database}.{table}`"
    if (facts.database, facts.table) != (database, table):
        yield f"{owner} is called `{facts.database}.{facts.table}` in the binlog. Give the dataset's feed that name."
    if facts.kind == _VERSIONED:
        yield (
            f"{owner} is WITH SYSTEM VERSIONING: its history is in the binlog as rows of its own. {_BY_CURSOR}, or remove the versioning."
        )
    elif facts.kind != _TABLE:
        kind = _KINDS.get(facts.kind, facts.kind)
        yield f"`{database}.{table}` is {kind}, and the binlog has rows of tables only. Capture the tables that it is made of."
    elif facts.engine.upper() not in _TRANSACTIONAL:
        yield (
            f"{owner} has the engine {facts.engine}, which knows no transactions: what was rolled back stays in it. "
            "Give it the engine InnoDB, or load it by its cursor column, from a connection with the plug-in `sql`."
        )
    for cascade in facts.cascades:
        yield (
            f"{owner} is changed by its foreign key {cascade.name} to {cascade.parent} ({', '.join(cascade.rules)}), and such changes are not "
            f"in the binlog. {_BY_CURSOR}, or make the key RESTRICT and let the application change its rows."
        )
