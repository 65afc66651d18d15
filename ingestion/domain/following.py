"""Following a copy: what one long run has seen so far, when it looks next, and when its sums are written down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from ingestion.domain.accounting import RowCounts

TELL_EVERY = timedelta(minutes=1)
"""So often at most the sums of a follow run are written down: a look by itself leaves nothing in the database."""
TELL_BATCHES_EVERY = timedelta(seconds=5)
"""And so often where a batch has committed since."""


@dataclass(frozen=True)
class FollowSums:
    """Since the run was asked for. `looked_at`: when the last look began that took everything in; `committed_at`: the last commit."""

    looks: int = 0
    batches: int = 0
    read: int = 0
    applied: int = 0
    superseded: int = 0
    redelivered: int = 0
    errors: int = 0
    looked_at: datetime | None = None
    committed_at: datetime | None = None

    def after_look(self, began_at: datetime) -> FollowSums:
        return replace(self, looks=self.looks + 1, looked_at=began_at)

    def after_batch(self, counts: RowCounts, *, committed_at: datetime) -> FollowSums:
        sums = {name: getattr(self, name) + value for name, value in asdict(counts).items()}
        return replace(self, batches=self.batches + 1, committed_at=committed_at, **sums)

    def to_json(self) -> dict[str, Any]:
        return {
            name: value.isoformat() if isinstance(value, datetime) else value for name, value in asdict(self).items()
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> FollowSums:
        """What an earlier version has written and this one does not know is left out."""
        numbers = {
            name: stored[name] for name, default in asdict(cls()).items() if isinstance(default, int) and name in stored
        }
        looked_at, committed_at = (_parse_instant(stored.get(name)) for name in ("looked_at", "committed_at"))
        return cls(**numbers, looked_at=looked_at, committed_at=committed_at)


def next_look_at(last_began_at: datetime | None, every: timedelta, *, now: datetime) -> datetime:
    """Counted from when the last look began. One that lies ahead was noted by a clock that was wrong, and holds nothing up."""
    if last_began_at is None or last_began_at > now:
        return now
    return last_began_at + every


def is_telling_due(told_at: datetime | None, *, now: datetime, committed_at: datetime | None = None) -> bool:
    """`told_at`: when the sums were written down last; `committed_at`: when the last batch committed."""
    # A commit that lies ahead was noted by a clock that was wrong: it is not told again and again until then.
    has_committed = told_at is not None and committed_at is not None and told_at < committed_at <= now
    return told_at is None or not told_at <= now < told_at + (TELL_BATCHES_EVERY if has_committed else TELL_EVERY)


def _parse_instant(text: Any) -> datetime | None:
    return datetime.fromisoformat(text) if isinstance(text, str) else None
