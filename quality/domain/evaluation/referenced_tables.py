"""The names of tables in a test, for whoever asks which tests a commit concerns."""

from __future__ import annotations

from quality.domain.language import THIS, asks_of, function_calls, parse


def referenced_tables(flattened: str) -> frozenset[str]:
    """Those that stand for more than the tested partition of the test's own table: datasets, `upstream`, `this` looking back.

    Raises ExpressionError.
    """
    asks = (ask for call in function_calls(parse(flattened)) for ask in asks_of(call))
    names = (name for ask in asks for name in (ask.table, *ask.measure.other_tables))
    return frozenset(name.dataset for name in names if name.dataset != THIS or name.shift)
