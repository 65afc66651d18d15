"""Takes what comes in the topics of a cluster, makes change events of it, and commits them to the changelog together with the places that were reached."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from ingestion.capture.source_counts import HourCounts, SourceCounts, as_logged
from ingestion.capture.topics.captured_topic import CapturedTopic, Received
from ingestion.capture.topics.place import TopicsState
from ingestion.changelog import ChangelogError, ChangelogWriter, Outgoing
from lakehub.source_topics.messages import TopicMessage
from lakehub.source_topics.reader import ReachedEnd

MAX_PENDING, MAX_PENDING_BYTES = 5_000, 8 * 2**20
"""Messages that wait for their commit."""
WAIT_S = 0.25


class Reader(Protocol):
    def poll(self, wait_s: float) -> Sequence[tuple[str, TopicMessage | ReachedEnd]]: ...


class TopicsTap:
    """`captured`: by topic of the changelog; each has a place in `state`. `readers`: one for each account, with the topics of the changelog that it reads for.
    `clock`: aware UTC."""

    def __init__(
        self,
        readers: Sequence[tuple[Reader, frozenset[str]]],
        writer: ChangelogWriter,
        captured: Mapping[str, CapturedTopic],
        state: TopicsState,
        *,
        clock: Callable[[], datetime],
    ) -> None:
        self._readers, self._writer, self._captured, self.state = readers, writer, captured, state
        self._clock, self._source = clock, SourceCounts(state.counts or {})
        self._has_moved = self._is_broken = False
        self.newest_at: datetime | None = None
        """Of the messages that were taken."""

    @property
    def captured_topics(self) -> frozenset[str]:
        """Of the changelog."""
        return frozenset(self._captured)

    def step(self) -> None:
        """Takes what has come and commits it. Raises TopicsError, ChangelogError; another tap goes on then."""
        if self._is_broken:
            raise ChangelogError(
                "This tap has failed, and what it had taken is gone. Begin another, which goes on from the changelog."
            )
        self._is_broken = True
        received = self._received()
        outgoing = [message for topic, each in received.items() for message in self._captured[topic].outgoing(each)]
        if self._has_moved:
            self._source.end_transaction()
            self._commit(outgoing)
        self._has_moved = self._is_broken = False

    def _commit(self, outgoing: Sequence[Outgoing]) -> None:
        at = as_logged(self._clock())
        self.state.counts = self._source.after_commit(at, with_open=False)
        self._writer.commit(outgoing, self.state.as_json(), at)
        self._source.note_committed(self.state.counts, with_open=False)

    @property
    def counts(self) -> HourCounts:
        """How many messages were taken, as far as that is committed."""
        return self._source.hours

    def forget_counts_before(self, hour: str) -> None:
        """Somebody keeps them."""
        self._source.forget_before(hour)

    def _received(self) -> Mapping[str, list[Received]]:
        """By topic of the changelog."""
        received = defaultdict[str, list[Received]](list)
        for reader, topics in self._readers:
            wait_s, messages, size = WAIT_S / len(self._readers), 0, 0
            while messages < MAX_PENDING and size < MAX_PENDING_BYTES:
                polled = reader.poll(wait_s)
                for topic, each in polled:
                    self._take(topic, each, topics, received)
                    size += len(each.value or b"") if isinstance(each, TopicMessage) else 0
                messages, wait_s = messages + len(polled), 0.0
                if not polled:
                    break
        return received

    def _take(
        self,
        topic: str,
        each: TopicMessage | ReachedEnd,
        topics: frozenset[str],
        received: Mapping[str, list[Received]],
    ) -> None:
        """For each dataset that has not taken it yet: several may read one topic, from other places on."""
        for own in topics:
            place = self.state.places[own]
            start = place.next.get(each.partition)
            if place.topic != topic or start is None:
                continue
            if isinstance(each, ReachedEnd):
                self._has_moved = self._has_moved or each.offset > start
                place.next[each.partition] = max(start, each.offset)
            elif each.offset >= start:
                self._source.add(own, 1)
                received[own].append(Received(each, place.sequence(each.partition, each.offset)))
                place.next[each.partition] = each.offset + 1
                self._has_moved = True
                self.newest_at = max(filter(None, (self.newest_at, each.at)), default=None)
