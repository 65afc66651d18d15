"""What Kafka calls a topic of the changelog, and the settings that it has there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256

LARGEST_MESSAGE = 16 * 2**20
"""Bytes of a key and a value: an event has at most half of it, and the rest is room for a row that was rejected, as JSON."""
MESSAGE_LIMIT = LARGEST_MESSAGE + 64 * 1024
"""The same with what Kafka adds."""
_POSITIONS = "lakehub-positions"
_LONGEST_NAME = 249
_OF_DATASET = re.compile(r"-2E[0-9]+(-2Eerrors)?$|^lakehub-sha256-", re.ASCII)
_ESCAPED = re.compile(rb"^_|[^A-Za-z0-9_]")


def topic_name(prefix: str, topic: str) -> str:
    """Another one for each topic, whatever it is called: a byte that is no letter, digit or `_` is `-` with its hexadecimal value.

    A dot is escaped as well: Kafka refuses a topic whose name differs from another's by `.` for `_` only. So is `_` at the beginning, with which
    Kafka's own topics begin.
    """
    name = _ESCAPED.sub(lambda match: b"-%02X" % match[0][0], topic.encode()).decode() or "-"
    if len(_below(prefix, name)) > _LONGEST_NAME:
        name = f"lakehub-sha256-{sha256(topic.encode()).hexdigest()}"
    return _below(prefix, name)


def positions_topic(prefix: str) -> str:
    """Where producers keep their positions. No topic is called so: `-po` escapes nothing."""
    return _below(prefix, _POSITIONS)


def is_topic_of_changelog(prefix: str, name: str) -> bool:
    """By Kafka's name for it. Without a prefix, those of datasets are known by their form: a name and a number."""
    if prefix:
        return name.startswith(f"{prefix}.")
    return name == _POSITIONS or _OF_DATASET.search(name) is not None


def _below(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name


def message_settings(retention_s: float) -> Mapping[str, str]:
    """Of a topic of messages. All that decides how long they are kept is named: the brokers' defaults may delete them by size, or compact them.

    A segment holds the largest message, and is not so large that what is too old stays for long.
    """
    return {
        "cleanup.policy": "delete",
        "retention.ms": str(int(retention_s * 1000)),
        "retention.bytes": "-1",
        "message.timestamp.type": "CreateTime",
        "max.message.bytes": str(MESSAGE_LIMIT),
        "segment.bytes": str(128 * 2**20),
    }


POSITION_SETTINGS: Mapping[str, str] = {
    "cleanup.policy": "compact",
    "segment.bytes": str(2 * LARGEST_MESSAGE),
    "min.cleanable.dirty.ratio": "0.1",
    "max.message.bytes": str(MESSAGE_LIMIT),
}
"""Small segments, which are compacted soon: whoever opens a producer reads all of the topic."""
