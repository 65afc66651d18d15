"""Tables and columns with hostile names: as the table, the key, the partition and the event time."""

from __future__ import annotations

from dataclasses import replace

from tests.contracts.awkward.shape import (
    EVERYWHERE,
    FILES,
    MARIADB,
    PARQUET,
    POSTGRESQL,
    SQLITE,
    Shape,
    grid,
    series,
)

DAYS = series("2026-11-10", "2026-11-16", "1 day")
NOT_MARIADB = (PARQUET, SQLITE, POSTGRESQL)


def quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def named(name: str, kinds: tuple[str, ...] = EVERYWHERE, space: str = " ") -> Shape:
    """A lost day and a doubled key."""
    key, day = (name, f"{name}{space}d")
    rows = grid(DAYS, "strftime(ts, '%Y-%m-%d') AS ds", lost="2026-11-12", doubled="2026-11-14")
    return Shape(
        f"SELECT id AS {quote(key)}, ds AS {quote(day)} FROM ({rows})",
        key=(key,), column=day, grain="day", local=f"{quote(day)}::TIMESTAMP", table=name, kinds=kinds,
    )  # fmt: skip


LONG = "a_name_that_goes_on_for_longer_than_anybody_would_type_it"

SHAPES = {
    "reserved word": named("select"),
    "reserved word of the product": named("this"),
    "upstream for a name": named("upstream", FILES),
    "quotes": named('say "hi"'),
    "apostrophe": named("it's"),
    "semicolon": named("a; DROP TABLE orders; --"),
    "space": named("two words"),
    "accents": named("Größe été"),
    "script": named("注文"),
    "emoji": named("✈️ flights 😀", NOT_MARIADB),
    "capitals": named("ORDERS"),
    "both cases": named("OrderLines"),
    "60 letters": named(LONG),
    "percent": named("100%s"),
    "colon": named(":name"),
    "braces": named("{0} {name}"),
    "backslash": named("a\\b", (*NOT_MARIADB, MARIADB)),
    "dollar": named("$files"),
    "hyphen": named("my-table"),
    "digits": named("2026"),
    "dot in a column": replace(named("a.b"), table="orders"),
    "dot in a table": replace(named("a.b", (POSTGRESQL,)), refused=("table", "There is no table `a.b`")),
    "dot in a table that names a database": replace(named("a.b", (SQLITE, MARIADB)), refused=("table", "nknown database")),
    "comma in a partition": replace(
        named("a, b"), table="orders", refused=("partition_column", "There is no column `a`"), kinds=(PARQUET, SQLITE)
    ),
    "glob in a file": replace(named("a[1]", FILES), refused=("table", "matches 0 files")),
}  # fmt: skip
