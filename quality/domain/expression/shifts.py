"""Looking back: how far a shift may go, and whole expressions moved to an earlier partition."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from quality.domain.expression.amounts import duration_of, duration_text
from quality.domain.expression.errors import NOWHERE, ExpressionError, Where
from quality.domain.expression.leaves import LEAVES
from quality.domain.expression.nodes import Call, Name, Node
from quality.domain.expression.series import SERIES

FURTHEST = timedelta(days=3660)
_HOUR = timedelta(hours=1)


def look_back(length: str, where: Where = NOWHERE) -> timedelta:
    """How far a shift of this text goes back. Raises ExpressionError."""
    try:
        back = duration_of(length)
    except (OverflowError, ValueError):
        back = FURTHEST + _HOUR
    if back % _HOUR or not back:
        raise ExpressionError(f"A shift is a whole number of hours or days, not `{length}`.", where=where)
    _refuse_too_far(back, where)
    return back


def shifted_back(node: Node, back: timedelta) -> Node:
    """The same of the partition that lies `back` before; tables that a leaf looks into as a whole stay. Raises ExpressionError."""
    if not isinstance(node, Call):
        return node
    if node.function in SERIES:
        raise ExpressionError(f"`{node.function}` looks back itself: it cannot be moved.", where=node.where)
    moved = LEAVES.get(node.function).tables if node.function in LEAVES else 0
    args = [_moved(arg, back) if place < moved else shifted_back(arg, back) for place, arg in enumerate(node.args)]
    return replace(node, args=tuple(args))


def _moved(arg: Node, back: timedelta) -> Node:
    if not isinstance(arg, Name):
        return arg
    _refuse_too_far(back - arg.shift, arg.where)
    return replace(arg, shift=arg.shift - back)


def _refuse_too_far(back: timedelta, where: Where) -> None:
    if back > FURTHEST:
        raise ExpressionError(
            f"A shift of `{duration_text(back)}` is too far; {FURTHEST.days}d are the most.", where=where
        )
