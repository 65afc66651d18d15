"""Of which columns a server makes another one, by the words of its definition: a generated column shows what it is made of, and so does a default."""

from __future__ import annotations

from ingestion.capture.binlog.statement_words import Words

_BEGINS = ("AS", "DEFAULT")
_ENDS = ("CHECK", "REFERENCES")
"""An expression of these gives no value."""


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
