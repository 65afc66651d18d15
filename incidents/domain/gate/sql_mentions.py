"""The safety net of the gate over SQL: what the text mentions, and the understanding of its tree does not account for.

Each word that could name a dataset stands in a token of the text. A token is accounted for where the part of the tree that was made
of it is one whose meaning is known. The rest is asked for as a whole where it is a dataset's name, so what was overlooked is
never missed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

import sqlglot
from sqlglot import Token, TokenType, exp
from sqlglot.dialects.dialect import Dialect

from incidents.domain.gate.sql_functions import reads_no_table
from incidents.domain.gate.sql_names import UnsupportedSql, sqlglot_dialect

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}(?![A-Za-z0-9_-])")
"""As datasets may be called."""
_PLAIN = (
    exp.Binary, exp.Not, exp.Neg, exp.Between, exp.Case, exp.If, exp.Cast, exp.Interval, exp.Is, exp.Bracket,
    exp.Select, exp.Alias, exp.Ordered, exp.Group, exp.Distinct, exp.Window, exp.Filter, exp.Where, exp.Having, exp.Qualify, exp.Limit,
    exp.Offset, exp.Join,
)  # fmt: skip
"""Where a column is a column and a text is a text."""


def unaccounted_names(sql: str, tree: exp.Expr, target: exp.Expr | None, dialect: str) -> frozenset[str]:
    """In small letters. `target` is what the query is written into, which is not read. Raises UnsupportedSql for comments and quotes that databases read in different ways."""
    of_sqlglot = sqlglot_dialect(dialect)
    tokens = sqlglot.tokenize(sql, read=of_sqlglot)
    _check_borders(sql, tokens, dialect, of_sqlglot)
    accounted = {*_accounted_places(tree), *(_places(target.find_all(exp.Identifier)) if target else ())}
    names = (
        word
        for token, following in zip(tokens, [*tokens[1:], None], strict=True)
        if token.start not in accounted and _may_name(token, following, of_sqlglot)
        for word in _words(token)
    )
    return frozenset(names)


def _words(token: Token) -> Iterator[str]:
    if token.token_type is TokenType.IDENTIFIER:
        yield token.text.lower()
    yield from (match.group().lower() for match in _WORD.finditer(token.text))


def _may_name(token: Token, following: Token | None, dialect: Dialect) -> bool:
    """Names and texts, and keywords that may be names; of these not what is called."""
    if token.token_type in (TokenType.VAR, TokenType.IDENTIFIER) or token.token_type.name.endswith("STRING"):
        return True
    is_called = following is not None and following.token_type is TokenType.L_PAREN
    return token.token_type in dialect.parser_class.ID_VAR_TOKENS and not is_called


def has_unary_plus(sql: str, dialect: str) -> bool:
    """A plus behind anything but what may be added to: the tree is the same without it."""
    of_sqlglot = sqlglot_dialect(dialect)
    tokens = sqlglot.tokenize(sql, read=of_sqlglot)
    summands = _SUMMANDS | of_sqlglot.parser_class.TYPE_TOKENS
    return any(
        token.token_type is TokenType.PLUS
        and before.token_type not in summands
        and not before.token_type.name.endswith("STRING")
        for before, token in pairwise(tokens)
    )


_SUMMANDS = frozenset({
    TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.NUMBER, TokenType.VAR, TokenType.IDENTIFIER, TokenType.END,
    TokenType.CURRENT_DATE, TokenType.CURRENT_DATETIME, TokenType.CURRENT_TIME, TokenType.CURRENT_TIMESTAMP,
})  # fmt: skip
"""The ends of what a plus may add to."""


# What is read in different ways


def _check_borders(sql: str, tokens: list[Token], dialect: str, of_sqlglot: Dialect) -> None:
    if "/*!" in sql or "/*M!" in sql:
        raise UnsupportedSql(
            "The query has a comment that MySQL runs (`/*! ... */`): write what it says, or leave it out."
        )
    comments = [comment for token in tokens for comment in token.comments]
    if any("{#" in between for between in _between(sql, tokens)):
        raise UnsupportedSql(
            "The query has a comment of a template (`{# ... #}`), which databases read otherwise: leave it out."
        )
    if any(comment.rstrip("\r\n").endswith("\\") for comment in comments):
        raise UnsupportedSql(
            "The query has a comment that ends with a backslash: Spark goes on with it in the next line."
        )
    if any("/*" in comment for comment in comments):
        raise UnsupportedSql("The query has a comment within a comment: databases differ about its end. Leave it out.")
    if any(token.token_type is TokenType.PIPE_GT for token in tokens):
        raise UnsupportedSql("The query is written with pipes (`|>`): write it with SELECT.")
    is_sure = "\\" in of_sqlglot.tokenizer_class.STRING_ESCAPES and dialect != "mysql"
    if not is_sure and re.search(r"\\['\"`]", sql):
        raise UnsupportedSql(
            "The query has a backslash in front of a quote, which may end a text or not: double the quote."
        )


def _between(sql: str, tokens: list[Token]) -> Iterator[str]:
    """What is no token: blanks and comments."""
    ends = [0, *(token.end + 1 for token in tokens)]
    starts = [*(token.start for token in tokens), len(sql)]
    yield from (sql[end:start] for end, start in zip(ends, starts, strict=True))


# What the tree accounts for


def _accounted_places(tree: exp.Expr) -> Iterator[int]:
    """Where the tokens begin whose meaning is known."""
    sources = {
        node.alias_or_name.lower() for node in tree.find_all(exp.Table, exp.Subquery, exp.Lateral, exp.Values, exp.CTE)
    }
    sources |= {unnest.alias.lower() for unnest in tree.find_all(exp.Unnest)}
    nodes = tree.find_all(exp.Identifier, exp.Literal)
    return _places(node for node in nodes if _is_accounted(node, sources))


def _places(nodes: Iterable[exp.Expr]) -> Iterator[int]:
    return (node.meta["start"] for node in nodes if "start" in node.meta)


def _is_accounted(node: exp.Expr, sources: set[str]) -> bool:
    parent, key = node.parent, node.arg_key
    if isinstance(node, exp.Literal):
        return _is_plain(node)
    if isinstance(parent, exp.Table):  # the tables are claimed themselves; a schema may be more than a schema
        return key == "this" or node.this.lower() == parent.name.lower()
    if isinstance(parent, exp.Column):
        return _is_plain(parent) and (key == "this" or (key == "table" and node.this.lower() in sources))
    if isinstance(parent, exp.TableAlias):
        return key in ("this", "columns")
    return isinstance(parent, (exp.Alias, exp.Join)) and key in ("alias", "using")


def _is_plain(node: exp.Expr) -> bool:
    while isinstance(node.parent, exp.Paren):
        node = node.parent
    parent, key = node.parent, node.arg_key
    if isinstance(parent, exp.In):
        return key == "this" or not node.find(exp.Column)
    if isinstance(parent, exp.Tuple):
        return not node.find(exp.Column) or not isinstance(parent.parent, exp.In) or parent.arg_key == "this"
    if isinstance(parent, exp.Join):
        return key == "on"
    return isinstance(parent, _PLAIN) or (isinstance(parent, exp.Func) and reads_no_table(parent))
