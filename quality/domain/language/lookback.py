"""Looking back: how far a shift may go, and whole expressions moved to an earlier partition."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from quality.domain.language.functions import FUNCTIONS
from quality.domain.language.tree.errors import NO_RANGE, ExpressionError, TextRange
from quality.domain.language.tree.literals import format_duration, parse_duration
from quality.domain.language.tree.nodes import Call, Name, Node
from quality.domain.language.window_functions import WINDOW_FUNCTIONS

MAX_LOOKBACK = timedelta(days=3660)
_HOUR = timedelta(hours=1)


def parse_lookback(length: str, where: TextRange = NO_RANGE) -> timedelta:
    """How far a shift of this text goes back. Raises ExpressionError."""
    try:
        back = parse_duration(length)
    except (OverflowError, ValueError):
        raise _too_far(length if len(length) <= 60 else f"{length[:60]}...", where) from None
    if back % _HOUR or not back:
        raise ExpressionError(f"A shift is a whole number of hours or days, not `{length}`.", where=where)
    _refuse_too_far(back, where)
    return back


def shift_back(node: Node, back: timedelta) -> Node:
    """The same of the partition that lies `back` before; tables that a leaf looks into as a whole stay. Raises ExpressionError."""
    if not isinstance(node, Call):
        return node
    if node.function in WINDOW_FUNCTIONS:
        raise ExpressionError(f"`{node.function}` looks back itself: it cannot be moved.", where=node.where)
    moved = FUNCTIONS.get(node.function).table_arguments if node.function in FUNCTIONS else 0
    args = [_shift_name(arg, back) if place < moved else shift_back(arg, back) for place, arg in enumerate(node.args)]
    return replace(node, args=tuple(args))


def _shift_name(arg: Node, back: timedelta) -> Node:
    if not isinstance(arg, Name):
        return arg
    _refuse_too_far(back - arg.shift, arg.where)
    return replace(arg, shift=arg.shift - back)


def _refuse_too_far(back: timedelta, where: TextRange) -> None:
    if back > MAX_LOOKBACK:
        raise _too_far(format_duration(back), where)


def _too_far(length: str, where: TextRange) -> ExpressionError:
    return ExpressionError(f"A shift of `{length}` is too far; {MAX_LOOKBACK.days}d are the most.", where=where)
