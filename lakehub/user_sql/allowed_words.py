"""What a parser prints as it stands, without quotes: names of units, keywords, named arguments, types and numbers.

A text of a person's that reached such a place would be SQL of its own, so only what cannot be any is let through: one plain
word, a number, or a type that is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from lakehub.user_sql import BadQuery

_PLAIN_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_NUMBER = re.compile(r"([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_KEYWORDS_OF_TWO_WORDS = frozenset({"CURRENT ROW", "FIRST VALUE", "LAST VALUE"})

_KNOWN_TYPES = """
BOOLEAN TINYINT SMALLINT MEDIUMINT INT BIGINT INT128 INT256 UTINYINT USMALLINT UMEDIUMINT UINT UBIGINT UINT128 UINT256
DECIMAL DECIMAL32 DECIMAL64 DECIMAL128 DECIMAL256 BIGDECIMAL DECFLOAT UDECIMAL FLOAT DOUBLE UDOUBLE MONEY SMALLMONEY BIT
CHAR NCHAR VARCHAR NVARCHAR BPCHAR TEXT TINYTEXT MEDIUMTEXT LONGTEXT FIXEDSTRING NAME UUID
BINARY VARBINARY BLOB TINYBLOB MEDIUMBLOB LONGBLOB JSON JSONB
DATE DATE32 DATETIME DATETIME2 DATETIME64 SMALLDATETIME TIME TIMETZ TIME_NS TIMESTAMP TIMESTAMPNTZ TIMESTAMPLTZ TIMESTAMPTZ
TIMESTAMP_S TIMESTAMP_MS TIMESTAMP_NS YEAR INTERVAL
ARRAY LIST STRUCT MAP INET
"""
KNOWN_TYPES = frozenset(_KNOWN_TYPES.split())

_QUOTED_PLACES = frozenset({
    (exp.Column, "this"), (exp.Column, "table"), (exp.Table, "this"), (exp.Alias, "alias"), (exp.TableAlias, "this"),
    (exp.TableAlias, "columns"), (exp.Aliases, "expressions"), (exp.Dot, "this"), (exp.Dot, "expression"), (exp.Join, "using"),
    (exp.Star, "except_"),
})  # fmt: skip
"""Where a name that a person quoted is printed in quotes again, by every dialect."""


def check_words(node: exp.Expr) -> None:
    """Raises BadQuery where the node itself holds what would be printed without quotes and is no plain word."""
    if isinstance(node, exp.DataType):
        _check_type(node)
    for text in _raw_texts(node):
        if not _may_be_printed(node, text):
            raise BadQuery(f"The query may not use {_shown(text)} here: {_remedy(node)}")


def _raw_texts(node: exp.Expr) -> Iterator[str]:
    for value in node.args.values():
        for part in value if isinstance(value, list) else (value,):
            if isinstance(part, str):
                yield part
            elif not (part is None or isinstance(part, exp.Expr | bool | int | exp.DType)):
                raise BadQuery(f"The query holds a value in {node.key.upper()} that cannot be checked.")


def _may_be_printed(node: exp.Expr, text: str) -> bool:
    if isinstance(node, exp.Literal):
        if node.args.get("is_string"):
            return (
                not isinstance(node.parent, exp.Extract)
                or node.arg_key != "this"
                or _PLAIN_WORD.fullmatch(text) is not None
            )
        return _NUMBER.fullmatch(text) is not None
    if isinstance(node, exp.Identifier) and node.args.get("quoted"):
        return bool(text) and (
            _PLAIN_WORD.fullmatch(text) is not None or (type(node.parent), node.arg_key) in _QUOTED_PLACES
        )
    return _PLAIN_WORD.fullmatch(text) is not None or text in _KEYWORDS_OF_TWO_WORDS


def _check_type(node: exp.DataType) -> None:
    kind = node.this
    if isinstance(kind, exp.Interval):
        return
    if not isinstance(kind, exp.DType) or kind.name not in KNOWN_TYPES or node.args.get("kind") is not None:
        name = node.args.get("kind") or getattr(kind, "name", kind)
        raise BadQuery(
            f"The query may not use the type {_shown(str(name))}: use one that every database has, such as VARCHAR."
        )


def _remedy(node: exp.Expr) -> str:
    if isinstance(node, exp.Literal):
        return "write numbers as 12, 1.5 or 1e6."
    if isinstance(node, exp.Identifier) and not node.args.get("quoted"):
        return "write a name that is more than letters, digits and _ in quotes."
    return "write a plain word of letters, digits and _."


def _shown(text: str) -> str:
    return f"`{text[:60]}`" + (" ..." if len(text) > 60 else "")
