"""What a backfill has recomputed of the data of an incident, in a sentence that its timeline has once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise

from lakehub.kernel.interval import Interval

_MAX_NAMED = 5
PAUSE = timedelta(minutes=5)
"""After which entries grow by whatever has ended meanwhile."""
_GROWTH = 100
"""The part of the chunks that have ended by which they grow at once: a hundredth."""


@dataclass(frozen=True)
class Affected:
    """Data of one copy that an incident is about, from when it began to fail until it passed; None: it fails."""

    data: Interval
    began_at: datetime
    ended_at: datetime | None

    def fails_during(self, made: MadeAnew) -> bool:
        return self.began_at <= made.ended_at and (self.ended_at is None or self.ended_at >= made.began_at)


@dataclass(frozen=True)
class MadeAnew:
    """What one run has committed. `partitions`: by name with the data of each, of which none overlap; a whole table has one without a name. `chunk`: of a backfill in chunks, from 1 on; else 0.
    `rows`: new, changed and deleted."""

    partitions: tuple[tuple[str, Interval], ...]
    began_at: datetime
    ended_at: datetime
    run: int | None
    rows: int
    chunk: int = 0


@dataclass(frozen=True)
class Noted:
    """A backfill as its entries tell of it: at which time they were made, how many of its chunks had ended, and whatever else decides what they say."""

    at: datetime
    ended: int
    rest: str

    def is_outdated(self, now: Noted) -> bool:
        """Whether they are to be recomputed, for which all chunks that are done are read.

        Where only chunks have ended since, they grow by a hundredth at a time, or after PAUSE: so what is read in all goes with the number of chunks and with
        time, and not with the square of that number.
        """
        grown = now.ended - self.ended
        if now.rest != self.rest or grown < 0:
            return True
        # One that lies ahead was noted by a clock that was wrong.
        has_paused = not timedelta() <= now.at - self.at < PAUSE
        return grown >= max(1, self.ended // _GROWTH) or (grown > 0 and has_paused)


def made_anew_of(made: Sequence[MadeAnew], affected: Iterable[Affected]) -> list[MadeAnew]:
    """The part of what was recomputed that failed then, in order. Looked up by time: both may be tens of thousands."""
    places = sorted(
        (data.start, data.end, number, place)
        for number, part in enumerate(made)
        for place, (_, data) in enumerate(part.partitions)
    )
    starts, ends = [each[0] for each in places], [each[1] for each in places]
    kept = defaultdict[int, set[int]](set)
    for each in affected:
        for _, _, number, place in places[bisect_right(ends, each.data.start) : bisect_left(starts, each.data.end)]:
            if each.fails_during(made[number]):
                kept[number].add(place)
    return [
        replace(made[number], partitions=tuple(made[number].partitions[place] for place in sorted(kept[number])))
        for number in sorted(kept)
    ]


def backfilled_text(made: Sequence[MadeAnew], what: str, asked_by: str, *, chunks: int = 0, ending: str = "") -> str:
    """`Partitions 2013-01-01 to 2013-01-10 were recomputed by backfill 7 (chunk 1 of 37), asked for by ines.` `what`: as `backfill 7`; `ending`: how that has ended."""
    partitions = [each for part in made for each in part.partitions]
    by = f"{what} ({_chunk_numbers(made)} of {chunks:,})" if chunks else what
    asked = f", asked for by {asked_by}" if asked_by else ""
    same = " No row was different." if not any(part.rows for part in made) else ""
    return f"{_subject(partitions)} recomputed by {by}{asked}.{same}{f' {ending}' if ending else ''}"


def _subject(partitions: Sequence[tuple[str, Interval]]) -> str:
    names = [name for name, _ in partitions]
    if names == [""]:
        return "The whole table was"
    if len(names) == 1:
        return f"Partition {names[0]} was"
    if all(earlier.end == later.start for (_, earlier), (_, later) in pairwise(partitions)):
        return f"Partitions {names[0]} to {names[-1]} were"
    more = f" and {len(names) - _MAX_NAMED:,} more" if len(names) > _MAX_NAMED else ""
    return f"Partitions {', '.join(names[:_MAX_NAMED])}{more} were"


def _chunk_numbers(made: Sequence[MadeAnew]) -> str:
    numbers = [part.chunk for part in made]
    if len(numbers) == 1:
        return f"chunk {numbers[0]:,}"
    if numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"chunks {numbers[0]:,} to {numbers[-1]:,}"
    more = f" and {len(numbers) - _MAX_NAMED:,} more" if len(numbers) > _MAX_NAMED else ""
    return f"chunks {', '.join(map(str, numbers[:_MAX_NAMED]))}{more}"
