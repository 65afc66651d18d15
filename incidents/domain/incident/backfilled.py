"""What a backfill has made anew of the data of an incident, in a sentence that its timeline has once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise

from lakehub.kernel.interval import Interval

_MAX_NAMED = 5


@dataclass(frozen=True)
class Affected:
    """Data of one copy that an incident is about, from when it began to fail until it passed; None: it fails."""

    data: Interval
    began_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True)
class MadeAnew:
    """What one run has committed. `partitions`: by name with the data of each; a whole table has one without a name. `chunk`: of a backfill in chunks, from 1 on; else 0.
    `rows`: new, changed and deleted."""

    partitions: tuple[tuple[str, Interval], ...]
    began_at: datetime
    ended_at: datetime
    run: int | None
    rows: int
    chunk: int = 0


def made_anew_of(made: Iterable[MadeAnew], affected: Collection[Affected]) -> list[MadeAnew]:
    """The part of what was made anew that failed then, in order."""
    return [part for each in made if (part := _part(each, affected)).partitions]


def _part(made: MadeAnew, affected: Collection[Affected]) -> MadeAnew:
    failing = [
        each.data
        for each in affected
        if each.began_at <= made.ended_at and (each.ended_at is None or each.ended_at >= made.began_at)
    ]
    kept = tuple(each for each in made.partitions if any(each[1].overlaps(data) for data in failing))
    return replace(made, partitions=kept)


def backfilled_text(made: Sequence[MadeAnew], what: str, asked_by: str, *, chunks: int = 0, ending: str = "") -> str:
    """`Partitions 2013-01-01 to 2013-01-10 were made anew by backfill 7 (chunk 1 of 37), asked for by ines.` `what`: as `backfill 7`; `ending`: how that has ended."""
    partitions = [each for part in made for each in part.partitions]
    by = f"{what} ({_chunk_numbers(made)} of {chunks:,})" if chunks else what
    asked = f", asked for by {asked_by}" if asked_by else ""
    same = " No row was different." if not any(part.rows for part in made) else ""
    return f"{_subject(partitions)} made anew by {by}{asked}.{same}{f' {ending}' if ending else ''}"


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
