"""Where a copy stands in its changelog, and whether it may be put elsewhere there.

Going back is safe: what is read again changes nothing, as each row knows the version of each of its columns. But not behind the beginning of the load: a row
that was deleted while nobody captured has no delete in the log, and would come back. Going forward leaves changes out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ingestion.domain.checkpoint import Position

LOG, LOAD, LOADED_FROM, LOADED_AT = "log", "load", "loaded_from", "loaded_at"
"""Of a checkpoint: where to read on, which load of the dataset its rows are of, where the log stood when that load began, and when that was (ISO 8601)."""
SCHEMA_VERSION = "schema_version"
"""Of a checkpoint: the number of the newest version of the subject that the columns of the table follow."""
TopicOffsets = Mapping[str, Mapping[str, int]]
"""By topic and partition."""
KeptOffsets = Mapping[str, Mapping[str, tuple[int, int]]]
"""By topic and partition: the offset of the oldest message that the log keeps, and of the one to come."""


class UnfitMove(ValueError):
    """The copy cannot be put there; the message says what to do instead."""


@dataclass(frozen=True)
class LogMove:
    before: TopicOffsets
    after: TopicOffsets

    @property
    def skipped(self) -> int:
        """Offsets that are passed over: about as many changes would be missing in the copy."""
        return sum(max(0, self.after[topic][part] - self.before[topic][part]) for topic, part in self._parts)

    @property
    def read_again(self) -> int:
        return sum(max(0, self.before[topic][part] - self.after[topic][part]) for topic, part in self._parts)

    @property
    def _parts(self) -> list[tuple[str, str]]:
        return [(topic, part) for topic, offsets in self.after.items() for part in offsets]

    def position(self, stored: Position) -> Position:
        return {**stored, LOG: {topic: dict(offsets) for topic, offsets in self.after.items()}}

    def as_json(self) -> dict[str, Any]:
        """For the commit that carries it."""
        return {
            "before": self.before,
            "after": self.after,
            "skipped": self.skipped,
            "read_again": self.read_again,
        }


def offsets_of(position: Position, kept: KeptOffsets) -> TopicOffsets:
    """Of each partition that there is. A topic that was written to since is read from its first message on."""
    log = position.get(LOG, {})
    return {
        topic: {part: log.get(topic, {}).get(part, first) for part, (first, _) in parts.items()}
        for topic, parts in kept.items()
    }


def least_offsets(position: Position, kept: KeptOffsets) -> TopicOffsets:
    """The earliest place that the copy can be put to. Of a load whose beginning is not known it may go back only where no capture was stopped before."""
    if LOADED_FROM not in position and position.get(LOAD, 1) > 1:
        return offsets_of(position, kept)
    loaded = position.get(LOADED_FROM, {})
    return {
        topic: {
            part: min(end, max(first, loaded.get(topic, {}).get(part, first))) for part, (first, end) in parts.items()
        }
        for topic, parts in kept.items()
    }


def plan_move(position: Position, wanted: TopicOffsets, kept: KeptOffsets) -> LogMove:
    """To `wanted`; partitions that it does not name stay where they are. Raises UnfitMove."""
    before, least = offsets_of(position, kept), least_offsets(position, kept)
    for topic, offsets in wanted.items():
        for part, offset in offsets.items():
            if part not in kept.get(topic, {}):
                known = ", ".join(f"`{each}`" for each in sorted(kept.get(topic, {}))) or "none"
                raise UnfitMove(f"`{topic}` has no partition `{part}`. It has {known}.")
            _check_offset(f"Partition {part} of `{topic}`", offset, least[topic][part], kept[topic][part])
    return LogMove(before, {topic: {**offsets, **wanted.get(topic, {})} for topic, offsets in before.items()})


def _check_offset(name: str, offset: int, least: int, kept: tuple[int, int]) -> None:
    first, end = kept
    if offset > end:
        raise UnfitMove(
            f"{name} ends at {end:,}, and {offset:,} was asked for. Name an offset from {least:,} to {end:,}."
        )
    if offset < first:
        raise UnfitMove(
            f"{name} keeps messages from {first:,} on, and {offset:,} was asked for. Go back to {least:,}, or bootstrap the copy with `replace`."
        )
    if offset < least:
        raise UnfitMove(
            f"{name}: the copy was loaded from {least:,} on, and {offset:,} was asked for. Older changes are in its rows already, and could bring deleted rows back. "
            f"Go back to {least:,}, or bootstrap the copy with `replace`."
        )
