"""Can a table be captured? What changes its rows without a row in the binlog, or writes there what is no row of it, and what to do about each."""

from __future__ import annotations

from collections.abc import Iterator

from ingestion.capture.table_facts import BASE_TABLE, VERSIONED_TABLE, TableFacts

_TRANSACTIONAL = frozenset({"INNODB", "ROCKSDB"})
_KINDS = {"VIEW": "a view", "SYSTEM VIEW": "a view of the server", "SEQUENCE": "a sequence", "TEMPORARY": "temporary"}
_BY_CURSOR = "Load it by its cursor column, from a connection with the plug-in `sql`"


def table_problems(facts: TableFacts, database: str, table: str) -> list[str]:
    """`database` and `table`: as the dataset names them. Empty: it can be captured."""
    return [*_problems(facts, database, table)]


def _problems(facts: TableFacts, database: str, table: str) -> Iterator[str]:
    owner = f"The table `{database}.{table}`"
    if (facts.database, facts.table) != (database, table):
        yield f"{owner} is called `{facts.database}.{facts.table}` in the binlog. Give the dataset's feed that name."
    if facts.kind == VERSIONED_TABLE:
        yield (
            f"{owner} is WITH SYSTEM VERSIONING: its history is in the binlog as rows of its own. {_BY_CURSOR}, or remove the versioning."
        )
    elif facts.kind != BASE_TABLE:
        kind = _KINDS.get(facts.kind, facts.kind)
        yield f"`{database}.{table}` is {kind}, and the binlog has rows of tables only. Capture the tables that it is made of."
    elif facts.engine and facts.engine.upper() not in _TRANSACTIONAL:
        yield (
            f"{owner} has the engine {facts.engine}, which knows no transactions: what was rolled back stays in it. "
            "Give it the engine InnoDB, or load it by its cursor column, from a connection with the plug-in `sql`."
        )
    if not facts.has_definition or (facts.kind == BASE_TABLE and not facts.engine):
        yield (
            f"The server cannot show how {owner[0].lower()}{owner[1:]} is defined. It may be locked at the moment, for example by an `ALTER TABLE` that is running: "
            "try again when that has ended. If the problem remains, run `SHOW CREATE TABLE` and fix the error that it reports."
        )
    for cascade in facts.cascades:
        yield (
            f"{owner} is changed by its foreign key {cascade.name} to {cascade.parent} ({', '.join(cascade.rules)}), and such changes are not "
            f"in the binlog. {_BY_CURSOR}, or make the key RESTRICT and let the application change its rows."
        )
