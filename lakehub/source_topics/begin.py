"""From where on a topic is read, as the option `topic_begin` of a feed says it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

EARLIEST, LATEST = "earliest", "latest"
KEY_IN_VALUE, KEY_OF_MESSAGE = "value", "message"
"""Where the key of a row is, as the option `topic_key` says it."""
BEGIN_FORM = (
    "Write earliest, latest, a time such as 2026-11-27T08:00:00Z, or the offset of each partition such as 0:15,1:20."
)
_OFFSETS = re.compile(r"\d{1,6}:\d{1,18}(,\d{1,6}:\d{1,18})*", re.ASCII)


@dataclass(frozen=True)
class TopicBegin:
    """One of these. `word`: earliest or latest. `at`: aware UTC. `offsets`: by partition; one that is not named is read from its oldest message on."""

    word: str = ""
    at: datetime | None = None
    offsets: Mapping[int, int] = field(default_factory=dict)


def parse_begin(text: str) -> TopicBegin:
    """Raises ValueError, which says the form."""
    if text in (EARLIEST, LATEST):
        return TopicBegin(text)
    if _OFFSETS.fullmatch(text):
        pairs = [pair.split(":") for pair in text.split(",")]
        return TopicBegin(offsets={int(partition): int(offset) for partition, offset in pairs})
    try:
        at = datetime.fromisoformat(text)
        return TopicBegin(at=at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC))
    except (ValueError, OverflowError):
        raise ValueError(BEGIN_FORM) from None


def is_begin(text: object) -> bool:
    try:
        return isinstance(text, str) and bool(parse_begin(text))
    except ValueError:
        return False
