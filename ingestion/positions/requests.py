"""Asking for another place of a copy in its changelog: where to, why, and what is refused before a job starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ingestion.captures.beginning import is_captured_feed
from ingestion.captures.records import topic_of
from ingestion.domain.log_moves import LogMove, TopicOffsets, UnfitMove
from ingestion.models import JobKind, JobRun
from ingestion.positions import places
from ingestion.runs import job_runs
from ingestion.spark.contract.job_kinds import EXCLUSIVE_KINDS
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.errors import Conflict, Refused

MAX_REASON_LENGTH = 2000


@dataclass(frozen=True)
class WantedPlace:
    """One of the three: an offset for some partitions of the topic; the first messages of a time; the earliest place that is possible."""

    offsets: Mapping[str, int] = field(default_factory=dict)
    time: datetime | None = None
    is_earliest: bool = False


@dataclass(frozen=True)
class SetPosition:
    run: JobRun
    move: LogMove

    def sentence(self) -> str:
        if self.move.skipped:
            return f"Run {self.run.pk} sets the position: about {self.move.skipped:,} changes are left out, and the copy counts as incomplete until it is loaded again."
        if self.move.read_again:
            return f"Run {self.run.pk} sets the position: about {self.move.read_again:,} messages are read again, which changes nothing that stands."
        return f"Run {self.run.pk} was asked for, and the copy stands there already."


def request_position(
    copy: DatasetCopy, wanted: WantedPlace, *, why: str, may_skip: bool, actor: str, now: datetime
) -> SetPosition:
    """Queues a run of the kind `set_position`. Raises Refused for what makes no sense, Conflict where a load is at work, and Busy.

    `may_skip`: whoever asks knows that changes are left out."""
    why = why.strip()
    _check_wanted(copy, wanted, why)
    _check_others(copy)
    offsets = _offsets(copy, wanted)
    try:
        move = places.planned_move(copy, offsets)
    except UnfitMove as problem:
        raise Refused.for_fields({"offsets": str(problem)}) from problem
    if move.skipped and not may_skip:
        raise Refused.for_fields(
            {
                "may_skip": f"About {move.skipped:,} changes would be left out: they would be missing in {copy} until it is loaded again. "
                "Say that you know (`may_skip`), or set an earlier position."
            }
        )
    params: dict[str, Any] = {
        "offsets": {name: dict(parts) for name, parts in offsets.items() if parts},
        "may_skip": may_skip,
        "why": why,
    }
    return SetPosition(
        job_runs.request_run(copy, JobKind.SET_POSITION, params, asked_by=actor, now=now, is_checked=True), move
    )


def _check_wanted(copy: DatasetCopy, wanted: WantedPlace, why: str) -> None:
    if not is_captured_feed(copy.dataset.feed_or_none):
        raise Refused(
            f"Dataset `{copy.dataset.name}` is not captured: its rows come from no changelog, so no position is to be set."
        )
    if not why or len(why) > MAX_REASON_LENGTH:
        raise Refused.for_fields(
            {"why": f"Say why, in at most {MAX_REASON_LENGTH:,} characters: it is kept in the audit log."}
        )
    if sum((bool(wanted.offsets), wanted.time is not None, wanted.is_earliest)) != 1:
        raise Refused.for_fields({"offsets": "Name `offsets`, a `time`, or `earliest`: one of the three."})


def _check_others(copy: DatasetCopy) -> None:
    """A load sets the position itself. Batches of changes may be at work: they find that the position was moved, and read again."""
    loads = JobRun.objects.filter(copy=copy, kind__in=EXCLUSIVE_KINDS, state__in=job_runs.ACTIVE)
    if run := loads.order_by("pk").first():
        raise Conflict(
            f"The {run.kind}, run {run.pk} of {copy}, is {run.state} and sets the position itself; nothing was changed. "
            "Wait until it has ended, or cancel it where it has not begun."
        )


def _offsets(copy: DatasetCopy, wanted: WantedPlace) -> TopicOffsets:
    if wanted.is_earliest:
        return places.earliest_offsets(copy)
    if wanted.time is not None:
        return places.offsets_at(copy, wanted.time.astimezone(UTC))
    return {topic_of(copy.dataset): dict(wanted.offsets)}
