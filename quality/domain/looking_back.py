"""From which partition on a test that looks back can have an answer: before, there is too little past."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from lakehub.kernel.calendar import Grain, partition_at, shifted
from quality.domain.expression import THIS, Call, Expression, Name, Node, asks_of
from quality.domain.expression.checker import least_of
from quality.domain.expression.leaves import LEAVES
from quality.domain.expression.nodes import NO_SHIFT, post_order
from quality.domain.expression.series import SERIES


def looks_back(expression: Expression, grain: Grain) -> timedelta:
    """How much past of its own copy the test needs; the past of other tables may go further back.

    The greatest shift; of a series the one that gives it its least number of points.
    """
    return _back(expression.assertion, grain)


@lru_cache(maxsize=4096)
def _back(node: Node, grain: Grain) -> timedelta:
    if not isinstance(node, Call):
        return NO_SHIFT
    if node.function in LEAVES:
        return max((-ask.table.shift for ask in asks_of(node) if _is_own(ask.table)), default=NO_SHIFT)
    furthest = max((_back(arg, grain) for arg in node.args), default=NO_SHIFT)
    is_series = node.function in SERIES and any(map(_is_own, post_order(node.args[0])))
    return furthest + least_of(node, grain) if is_series else furthest


def _is_own(node: Node) -> bool:
    return isinstance(node, Name) and node.dataset == THIS and not node.data_center


def first_answer(since: datetime, back: timedelta, grain: Grain, zone: ZoneInfo) -> datetime:
    """The start of the first partition that has the partition `back` before it at or after the one of `since`."""
    if not back or grain is Grain.NONE:
        return since
    oldest = partition_at(since, grain, zone)
    first = shifted(oldest, back, grain, zone)
    while shifted(first, -back, grain, zone).start < oldest.start:  # months differ in length
        first = partition_at(first.end, grain, zone)
    return first.start
