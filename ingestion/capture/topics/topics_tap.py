"""Takes what comes in the topics of a cluster, makes change events of it, and commits them to the changelog together with the places that were reached."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from ingestion.capture.source_counts import HourCounts, SourceCounts, as_logged
from ingestion.capture.topics.captured_topic import CapturedTopic, Received
from ingestion.capture.topics.place import TopicsState, partitions_of
from ingestion.changelog import ChangelogError, ChangelogWriter, Outgoing
from lakehub.source_topics.broken import RegistrySilent, TopicsError
from lakehub.source_topics.cluster import Places
from lakehub.source_topics.messages import TopicMessage
from lakehub.source_topics.reader import ReachedEnd, TopicOutdated

MAX_PENDING, MAX_PENDING_BYTES = 5_000, 8 * 2**20
"""Messages that wait for their commit."""
WAIT_S = 0.25
READ_AGAIN_S = 60.0
"""After a reader that is refused."""


class Reader(Protocol):
    def poll(self, wait_s: float) -> Sequence[tuple[str, TopicMessage | ReachedEnd]]: ...

    def read_from(self, places: Places) -> None: ...


@dataclass(frozen=True)
class Wait:
    """`until`: by the monotonic clock."""

    why: str
    until: float


class _HaveToWait(Exception):
    def __init__(self, topics: Collection[str], wait: Wait) -> None:
        super().__init__(wait.why)
        self.topics, self.wait = topics, wait


class TopicsTap:
    """`captured`: by topic of the changelog; each has a place in `state`. `readers`: one for each account, with the topics of the changelog that it reads for.
    A topic that waits, for a registry or for the right to read it, keeps no other waiting. `clock`: aware UTC."""

    def __init__(
        self,
        readers: Sequence[tuple[Reader, frozenset[str]]],
        writer: ChangelogWriter,
        captured: Mapping[str, CapturedTopic],
        state: TopicsState,
        *,
        clock: Callable[[], datetime],
        monotonic: Callable[[], float],
    ) -> None:
        self._readers, self._writer, self._captured, self.state = readers, writer, captured, state
        self._clock, self._monotonic, self._source = clock, monotonic, SourceCounts(state.counts or {})
        self.waits = dict[str, Wait]()
        """By topic of the changelog; none of them is read."""
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
        self._go_on_with_those_that_waited()
        before = {topic: dict(self.state.places[topic].next) for topic in self._captured}
        try:
            received = self._received()
            outgoing = [message for topic, each in received.items() for message in self._outgoing(topic, each)]
        except _HaveToWait as problem:
            self._give_back(before, problem)
        else:
            if self._has_moved:
                self._count(received)
                self._commit(outgoing)
        self._has_moved = self._is_broken = False

    def _outgoing(self, topic: str, received: Sequence[Received]) -> list[Outgoing]:
        try:
            return self._captured[topic].outgoing(received)
        except RegistrySilent as problem:
            raise _HaveToWait({topic}, Wait(str(problem), problem.until)) from problem

    def _give_back(self, before: Mapping[str, dict[int, int]], problem: _HaveToWait) -> None:
        """All that this step has taken: the next takes it, without those that wait. So no step waits for two of them."""
        moved = {topic for topic, offsets in before.items() if self.state.places[topic].next != offsets}
        for topic in moved:
            self.state.places[topic].next = before[topic]
        self.waits |= dict.fromkeys(problem.topics, problem.wait)
        self._read_anew(moved | {*problem.topics})

    def _go_on_with_those_that_waited(self) -> None:
        now = self._monotonic()
        if over := {topic for topic, wait in self.waits.items() if now >= wait.until}:
            self.waits = {topic: wait for topic, wait in self.waits.items() if topic not in over}
            self._read_anew(over)

    def _read_anew(self, topics: Collection[str]) -> None:
        for reader, own in self._readers:
            if not own.isdisjoint(topics):
                reader.read_from(partitions_of([self.state.places[each] for each in own if each not in self.waits]))

    def _count(self, received: Mapping[str, Sequence[Received]]) -> None:
        for topic, each in received.items():
            self._source.add(topic, len(each))
            self.newest_at = max(filter(None, (self.newest_at, *(taken.message.at for taken in each))), default=None)
        self._source.end_transaction()

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
                polled = self._poll(reader, topics, wait_s)
                for topic, each in polled:
                    self._take(topic, each, topics, received)
                    size += len(each.value or b"") if isinstance(each, TopicMessage) else 0
                messages, wait_s = messages + len(polled), 0.0
                if not polled:
                    break
        return received

    def _poll(
        self, reader: Reader, topics: frozenset[str], wait_s: float
    ) -> Sequence[tuple[str, TopicMessage | ReachedEnd]]:
        try:
            return reader.poll(wait_s)
        except TopicOutdated:
            raise
        except TopicsError as problem:
            raise _HaveToWait(topics, Wait(str(problem), self._monotonic() + READ_AGAIN_S)) from problem

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
            if place.topic != topic or start is None or own in self.waits:
                continue
            if isinstance(each, ReachedEnd):
                self._has_moved = self._has_moved or each.offset > start
                place.next[each.partition] = max(start, each.offset)
            elif each.offset >= start:
                received[own].append(Received(each, place.sequence(each.partition, each.offset)))
                place.next[each.partition] = each.offset + 1
                self._has_moved = True
