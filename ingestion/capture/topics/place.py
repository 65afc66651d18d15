"""Where a tap stands in the topics of a cluster, and the order that it gives to their messages: both say the same whichever process reads them.

The order of a partition is that of its offsets, and a key stays in one partition, until the topic gets more of them: then keys continue in others, whose offsets begin at 0.
So each time that it does, what comes later in any partition is greater than all that was there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ingestion.capture.source_counts import HourCounts
from lakehub.source_topics.cluster import Bounds

_EPOCH_BITS = 48
"""Below them lies the offset: no partition has so many messages."""


@dataclass
class TopicPlace:
    """Of one dataset. `topic`: that is read; `topic_id`: another one when it is made anew; empty: the brokers give none. `next`: by partition the offset to read on from.
    `grown`: for each time that partitions were added, where those that were there ended."""

    load: int
    topic: str
    topic_id: str
    next: dict[int, int]
    grown: list[dict[int, int]] = field(default_factory=list)

    def sequence(self, partition: int, offset: int) -> int:
        """Of a message, among all of its row."""
        epoch = sum(offset >= ends.get(partition, 0) for ends in self.grown)
        return (epoch << _EPOCH_BITS) | offset

    def add_partitions(self, bounds: Mapping[int, Bounds]) -> None:
        """Of the topic as it is now, where there are more than before: new ones are read from their first message on."""
        new = bounds.keys() - self.next.keys()
        if new:
            self.grown.append({partition: bounds[partition].next for partition in self.next})
            self.next |= {partition: bounds[partition].first for partition in sorted(new)}

    def as_json(self) -> dict[str, Any]:
        return {
            "load": self.load,
            "topic": self.topic,
            "id": self.topic_id,
            "next": {str(partition): offset for partition, offset in self.next.items()},
            "grown": [{str(partition): offset for partition, offset in ends.items()} for ends in self.grown],
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> TopicPlace:
        grown = [_numbered(ends) for ends in stored["grown"]]
        return cls(stored["load"], stored["topic"], stored["id"], _numbered(stored["next"]), grown)


@dataclass
class TopicsState:
    """What the tap of a cluster keeps in the changelog. `places`: by topic of the changelog. `stopped`: by the same the load in which it was stopped."""

    places: dict[str, TopicPlace] = field(default_factory=dict)
    stopped: dict[str, int] = field(default_factory=dict)
    counts: HourCounts | None = None
    """Of the messages that were taken, until they are kept elsewhere; None: nobody has counted."""

    def as_json(self) -> dict[str, Any]:
        places = {topic: place.as_json() for topic, place in self.places.items()}
        counted = {} if self.counts is None else {"counts": {hour: dict(of) for hour, of in self.counts.items()}}
        return {"places": places, "stopped": self.stopped, **counted}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> TopicsState:
        places = {topic: TopicPlace.from_json(place) for topic, place in stored["places"].items()}
        return cls(places, dict(stored["stopped"]), stored.get("counts"))


def offsets_text(offsets: Mapping[int, int]) -> str:
    """`0:15,1:20`, as the option `begin` takes it."""
    return ",".join(f"{partition}:{offset}" for partition, offset in sorted(offsets.items()))


def _numbered(offsets: Mapping[str, int]) -> dict[int, int]:
    return {int(partition): offset for partition, offset in offsets.items()}


def why_cannot_go_on(place: TopicPlace, topic_id: str | None, bounds: Mapping[int, Bounds]) -> str:
    """What has become of the topic since the place was kept; empty: it goes on. `topic_id` None: it is not there."""
    if topic_id is None:
        return f"The topic `{place.topic}` was deleted, or the account may not describe it any more; its rows in the lake are still there."
    if place.topic_id and topic_id != place.topic_id:
        return f"The topic `{place.topic}` was deleted and made anew: its messages are others, and count anew."
    reasons = (_why_gone(place, partition, bounds.get(partition)) for partition in sorted(place.next))
    return next(filter(None, reasons), "")


def _why_gone(place: TopicPlace, partition: int, bounds: Bounds | None) -> str:
    start = place.next[partition]
    if bounds is None:
        return f"The topic `{place.topic}` has no partition {partition} any more."
    if start < bounds.first:
        return (
            f"The topic `{place.topic}` has removed messages before they were captured: its partition {partition} begins at {bounds.first:,}, and {start:,} was "
            "to be read. Let it keep messages for longer (`retention.ms`) than the tap may be away."
        )
    if start > bounds.next:
        return (
            f"The topic `{place.topic}` has lost messages that were captured: its partition {partition} ends at {bounds.next:,}, and {start:,} was to be read. "
            "It was made anew or restored."
        )
    return ""


def partitions_of(places: Sequence[TopicPlace]) -> dict[str, dict[int, int]]:
    """By topic and partition, from where on all of them have what they need."""
    starts: dict[str, dict[int, int]] = {}
    for place in places:
        of_topic = starts.setdefault(place.topic, {})
        for partition, offset in place.next.items():
            of_topic[partition] = min(offset, of_topic.get(partition, offset))
    return starts
