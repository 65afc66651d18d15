"""Of which columns a server makes another one, by the words of its definition: a generated column shows what it is made of, and so does a default."""

from __future__ import annotations

from collections.abc import Iterator

from ingestion.capture.binlog.statement_words import Words

_BEGINS = ("AS", "DEFAULT")
_ENDS = ("CHECK", "REFERENCES")
"""An expression of these gives no value."""


def definitions_in(clause: Words) -> Iterator[tuple[str, Words]]:
    """The columns that a clause of an ALTER TABLE defines, by their new names, with what comes after them."""
    verb = clause.take().word
    if verb not in ("ADD", "MODIFY", "CHANGE", "ALTER"):
        return
    clause.skip("COLUMN")
    clause.skip("IF", "NOT", "EXISTS")
    if verb == "CHANGE":
        clause.take()
    if verb == "ADD" and clause.skip("("):
        yield from ((each.take().text, each) for each in clause.split())
    else:
        yield clause.take().text, clause


def names_in_expressions(definition: Words) -> frozenset[str]:
    """In parentheses, behind AS or DEFAULT."""
    names, depth, is_made = set[str](), 0, False
    while definition.is_more:
        token = definition.take()
        depth += {"(": 1, ")": -1}.get(token.word, 0)
        if depth <= 0:
            is_made = token.word in _BEGINS or (is_made and token.word not in _ENDS)
        elif is_made:
            names.add(token.text)
    return frozenset(names)
