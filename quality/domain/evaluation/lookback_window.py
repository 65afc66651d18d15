"""From which partition on a test that looks back can have an answer: before, there is too little past."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from lakehub.kernel.partitions import Grain, partition_at, shifted_partition
from quality.domain.language import THIS, Call, Expression, Name, Node, asks_of
from quality.domain.language.functions import FUNCTIONS
from quality.domain.language.tree.nodes import NO_SHIFT, post_order
from quality.domain.language.type_checker import min_history_of
from quality.domain.language.window_functions import WINDOW_FUNCTIONS


def required_history(expression: Expression, grain: Grain) -> timedelta:
    """How much past of its own copy the test needs; the past of other tables may go further back.

    The greatest shift; of a series the one that gives it its least number of points.
    """
    return _required_history(expression.assertion, grain)


@lru_cache(maxsize=4096)
def _required_history(node: Node, grain: Grain) -> timedelta:
    if not isinstance(node, Call):
        return NO_SHIFT
    if node.function in FUNCTIONS:
        return max((-ask.table.shift for ask in asks_of(node) if _is_own(ask.table)), default=NO_SHIFT)
    furthest = max((_required_history(arg, grain) for arg in node.args), default=NO_SHIFT)
    is_series = node.function in WINDOW_FUNCTIONS and any(map(_is_own, post_order(node.args[0])))
    return furthest + min_history_of(node, grain) if is_series else furthest


def _is_own(node: Node) -> bool:
    return isinstance(node, Name) and node.dataset == THIS and not node.data_center


def first_answerable_start(since: datetime, back: timedelta, grain: Grain, zone: ZoneInfo) -> datetime:
    """The start of the first partition that has the partition `back` before it at or after the one of `since`."""
    if not back or grain is Grain.NONE:
        return since
    oldest = partition_at(since, grain, zone)
    first = shifted_partition(oldest, back, grain, zone)
    while shifted_partition(first, -back, grain, zone).start < oldest.start:  # months differ in length
        first = partition_at(first.end, grain, zone)
    return first.start
