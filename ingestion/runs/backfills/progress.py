"""How far backfills are: chunks, partitions and rows by what became of them, and the time that is left."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, F, Sum

from ingestion.domain.backfills.remaining import backfill_time_left
from ingestion.models import Backfill, BackfillChunk, BackfillState, ChunkState

MAX_CHUNKS_SHOWN = 100


@dataclass(frozen=True)
class BackfillProgress:
    """`chunks` and `partitions` by state of the chunk, each state. `time_left` None: no chunk is done yet, or it does not run."""

    backfill: Backfill
    chunks: Mapping[str, int]
    partitions: Mapping[str, int]
    rows: int
    time_left: timedelta | None

    @property
    def total(self) -> int:
        return sum(self.partitions.values())

    @property
    def ended(self) -> int:
        """Partitions of chunks that are done, or were given up."""
        return self.partitions[ChunkState.SUCCEEDED] + self.partitions[ChunkState.FAILED]


def backfill_progress(backfills: Iterable[Backfill]) -> list[BackfillProgress]:
    """In their order. One query."""
    shown = list(backfills)
    chunks = BackfillChunk.objects.filter(backfill__in=[each.pk for each in shown]).order_by()
    sums = chunks.values("backfill", "state").annotate(
        chunks=Count("pk"), partitions=Sum("size"), changed=Sum("rows"), took=Sum(F("ended_at") - F("began_at"))
    )
    facts = {(each["backfill"], each["state"]): each for each in sums}
    return [_progress(each, {state: facts.get((each.pk, state), {}) for state in ChunkState.values}) for each in shown]


def _progress(backfill: Backfill, facts: Mapping[str, Mapping[str, object]]) -> BackfillProgress:
    def amounts(name: str) -> dict[str, int]:
        return {state: value if isinstance(value := of.get(name), int) else 0 for state, of in facts.items()}

    partitions, took = amounts("partitions"), facts[ChunkState.SUCCEEDED].get("took")
    is_running = backfill.state == BackfillState.RUNNING
    left = backfill_time_left(
        took=took if isinstance(took, timedelta) else timedelta(),
        done=partitions[ChunkState.SUCCEEDED],
        left=partitions[ChunkState.WAITING] + partitions[ChunkState.RUNNING],
    )
    rows = sum(amounts("changed").values())
    return BackfillProgress(backfill, amounts("chunks"), partitions, rows, left if is_running else None)


def ended_count(backfill: Backfill) -> int:
    """Of chunks that are done or were given up; none of them is read."""
    return backfill.chunks.filter(ended_at__isnull=False).count()


def newest_end(backfill: Backfill) -> datetime | None:
    """When the last chunk ended."""
    ended = backfill.chunks.filter(ended_at__isnull=False).order_by("-ended_at")
    return ended.values_list("ended_at", flat=True).first()


def failed_chunks(backfill: Backfill) -> list[BackfillChunk]:
    """Which to try again, in order; the first MAX_CHUNKS_SHOWN."""
    return failed_chunks_of([backfill]).get(backfill.pk, [])


def failed_chunks_of(backfills: Iterable[Backfill]) -> dict[int, list[BackfillChunk]]:
    """By backfill, in order; the first MAX_CHUNKS_SHOWN of all, those of the newest backfills first. One query."""
    failed = BackfillChunk.objects.filter(backfill__in=[each.pk for each in backfills], state=ChunkState.FAILED)
    chunks = defaultdict(list)
    for chunk in failed.order_by("-backfill", "number")[:MAX_CHUNKS_SHOWN]:
        chunks[chunk.backfill_id].append(chunk)
    return dict(chunks)


def running_chunk(backfill: Backfill) -> BackfillChunk | None:
    return backfill.chunks.filter(state=ChunkState.RUNNING).order_by("number").first()
