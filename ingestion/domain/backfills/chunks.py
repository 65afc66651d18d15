"""The partitions that a backfill names, in order, and the chunks into which they are cut."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from zoneinfo import ZoneInfo

from lakehub.kernel.interval import Interval
from lakehub.kernel.partitions import Grain, parse_partition_name, partition_name, partitions_within

MAX_PARTITIONS = 20_000
"""Of one backfill: more than two years of hours."""
DEFAULT_CHUNK_SIZE, MAX_CHUNK_SIZE = 10, 1_000
_MAX_SHOWN = 60


def partitions_between(first: str, last: str, grain: Grain, zone: ZoneInfo) -> list[str]:
    """The names of all partitions that the calendar has from `first` to `last`, both included. Raises ValueError that says what to name instead."""
    if grain is Grain.NONE:
        raise ValueError("its partitions are no times, so none lie between two of them: name each in `partitions`.")
    start, end = (parse_partition_name(name[:_MAX_SHOWN], grain, zone) for name in (first, last))
    if end.start < start.start:
        raise ValueError(f"`first` {first} lies after `last` {last}: name the earlier one first.")
    whole = partitions_within(Interval(start.start, end.end), grain, zone)
    names = [partition_name(each, grain, zone) for each in islice(whole, MAX_PARTITIONS + 1)]
    return check_count(names)


def partitions_named(names: Iterable[str], grain: Grain, zone: ZoneInfo) -> list[str]:
    """Each once: by time where they are times, else as they were given. Raises ValueError for a name that is no partition's."""
    if grain is Grain.NONE:
        return check_count([*dict.fromkeys(names)])
    parsed = {parse_partition_name(name[:_MAX_SHOWN], grain, zone) for name in names}
    return check_count([partition_name(each, grain, zone) for each in sorted(parsed, key=lambda each: each.start)])


def check_count(names: list[str]) -> list[str]:
    """Raises ValueError for none, and for too many."""
    if not names:
        raise ValueError("no partition is named: give `first` and `last`, or `partitions`.")
    if len(names) > MAX_PARTITIONS:
        raise ValueError(
            f"a backfill has {MAX_PARTITIONS:,} partitions at most, and these are more: end it before `{names[MAX_PARTITIONS]}`, and ask for the rest afterwards."
        )
    return names


def cut(names: Sequence[str], size: int) -> list[list[str]]:
    """In order, of `size` partitions each; the last may have fewer."""
    return [list(names[start : start + size]) for start in range(0, len(names), size)]
