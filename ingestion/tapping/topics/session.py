"""One reading of a cluster's topics for a plan: from its opening, where captures are taken on, to the first error, the next plan, or a topic that is not what it was."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import inf
from typing import Any

from ingestion.capture.source_counts import HourCounts
from ingestion.capture.tap.captured_table import CaptureSpec
from ingestion.capture.topics.captured_topic import CapturedTopic
from ingestion.capture.topics.place import TopicPlace, TopicsState, offsets_text, partitions_of, why_cannot_go_on
from ingestion.capture.topics.topics_tap import WAIT_S, TopicsTap
from ingestion.captures import states
from ingestion.captures.changelog import producer_of
from ingestion.captures.reach import BEHIND
from ingestion.captures.servers import PlannedCapture, current_plan
from ingestion.heatpipe.encoder import Encoder
from ingestion.heatpipe.reading import ERRORS_SUFFIX
from ingestion.heatpipe.subject_schema import SubjectSchema
from ingestion.models import TapServer
from ingestion.schemas.captured_versions import VersionsByTopic
from ingestion.tapping.beginning import LOAD_AGAIN, moved_captures, table_name
from ingestion.tapping.parts import TapParts
from ingestion.tapping.session import (
    PlanOutdated,
    forgotten_stops,
    goes_on,
    keep_stops,
    keep_stored_counts,
    versions_by_topic,
)
from ingestion.tapping.source_server import ServerUnreachable
from ingestion.tapping.topics.looks import LooksAgain, TopicLook, look_at_cluster
from lakehub.source_topics.begin import EARLIEST, KEY_OF_MESSAGE, LATEST, TopicBegin, parse_begin
from lakehub.source_topics.broken import RegistrySilent, TopicsError
from lakehub.source_topics.cluster import LATEST as NEWEST
from lakehub.source_topics.cluster import TopicCluster, open_cluster
from lakehub.source_topics.reader import TopicOutdated, TopicReader, sample_topic
from lakehub.source_topics.registry import SchemaRegistry

LOOK_EVERY_S = 2.0
"""At the topics, for what their messages do not say: whether they are the same, how many partitions they have, and how far they go."""
OPEN_AGAIN_S = 60.0
"""Where topics wait for their registry to begin."""
_WAITS = "The topics that need it wait, and others of the cluster do not: {}"


@dataclass
class TopicsSession:
    """Close it, whatever becomes of it. What `open_topics_session` has begun."""

    plan: Sequence[PlannedCapture]
    parts: TapParts
    clusters: Mapping[str, TopicCluster] = field(repr=False)
    """By the URL of a connection."""
    readers: Sequence[TopicReader]
    tap: TopicsTap
    ends: dict[tuple[str, str], Mapping[int, int]]
    """By URL and topic, how far its partitions went when they were looked at last."""
    waits: Mapping[str, str]
    """By topic of the changelog, why this session leaves it out; others may wait too, for a while."""
    silent: LooksAgain
    """The connections that do not get through."""
    opens_again_at: float
    """By the monotonic clock, for topics that wait to begin."""
    behind: set[str]
    """Topics of the changelog that wait, or have waited and are not at the end yet: all others may be caught up without them."""
    _looked_at: float = field(init=False)
    _opened_at: float = field(init=False)

    def __post_init__(self) -> None:
        self._looked_at = self._opened_at = self.parts.monotonic()

    def step(self) -> None:
        """Takes what has come. Raises ServerUnreachable, ChangelogError, PlanOutdated."""
        if self.parts.monotonic() >= self.opens_again_at or self.silent.has_heard():
            raise PlanOutdated
        if not self.readers:  # all of its topics are stopped: nobody else waits for messages
            self.parts.pause(WAIT_S)
        try:
            self.tap.step()
            self._note_waits()
            if self.parts.monotonic() >= self._looked_at + LOOK_EVERY_S:
                self._look()
                self._looked_at = self.parts.monotonic()
        except TopicOutdated as problem:
            if self.parts.monotonic() < self._opened_at + LOOK_EVERY_S:  # it was as it had to be just now
                raise ServerUnreachable(str(problem)) from problem
            raise PlanOutdated from problem
        except TopicsError as problem:
            raise ServerUnreachable(str(problem)) from problem

    def _note_waits(self) -> None:
        """Raises ServerUnreachable where nothing is left to read."""
        waits = self.tap.waits
        self.behind |= waits.keys()
        if waits and waits.keys() >= self.tap.captured_topics:
            raise ServerUnreachable(next(iter(waits.values())).why)

    def close(self) -> None:
        for reader in self.readers:
            reader.close()

    def _look(self) -> None:
        for url, cluster in self.clusters.items():
            places = self._places(url)
            facts = cluster.facts([*partitions_of([*places.values()])])
            for place in places.values():
                topic = facts.get(place.topic)
                if topic is None or topic.id != place.topic_id or set(topic.partitions) != place.next.keys():
                    raise PlanOutdated
                self.ends[url, place.topic] = cluster.offsets(place.topic, topic.partitions, NEWEST)
        self.behind -= {topic for topic in self.behind & self.tap.captured_topics if self._is_at_end(topic)}

    def _places(self, url: str) -> dict[str, TopicPlace]:
        """By topic of the changelog."""
        own = [each.spec.topic for each in self.plan if each.url == url]
        return {topic: self.tap.state.places[topic] for topic in own if topic in self.tap.captured_topics}

    def _is_at_end(self, topic: str) -> bool:
        (url,) = (each.url for each in self.plan if each.spec.topic == topic)
        place = self.tap.state.places[topic]
        ends = self.ends[url, place.topic]
        return topic not in self.tap.waits and all(place.next.get(number, 0) >= end for number, end in ends.items())

    @property
    def position(self) -> str:
        """How far each topic was taken, for people."""
        places = [place for url in self.clusters for place in self._places(url).values()]
        return "; ".join(f"{topic} {offsets_text(offsets)}" for topic, offsets in sorted(partitions_of(places).items()))

    @property
    def place(self) -> dict[str, Any]:
        """The position says all of it, but for which datasets it does not count when all others are caught up."""
        return {BEHIND: sorted(self.behind)} if self.behind else {}

    @property
    def event_at(self) -> datetime | None:
        """Producers may write times that are to come."""
        newest = self.tap.newest_at
        return None if newest is None else min(newest, self.parts.clock())

    @property
    def is_caught_up(self) -> bool:
        others = self.tap.captured_topics - self.behind
        return not (self.behind and not others) and all(map(self._is_at_end, others))

    @property
    def captured(self) -> int:
        return len(self.tap.captured_topics)

    @property
    def counts(self) -> HourCounts:
        return self.tap.counts

    def forget_counts_before(self, hour: str) -> None:
        self.tap.forget_counts_before(hour)

    @property
    def warnings(self) -> list[str]:
        own = [wait.why for wait in self.tap.waits.values()]
        return [*dict.fromkeys([*self.waits.values(), *(_WAITS.format(why) for why in own)])]


def open_topics_session(server: str, plan: Sequence[PlannedCapture], parts: TapParts) -> TopicsSession:
    """`server`: of `TopicsAddress`. Captures that are new in the plan begin here: first the changelog has the place, then the capture says so.

    Raises ServerUnreachable, ChangelogError.
    """
    try:
        return _open(server, current_plan(plan), parts)
    except TopicsError as problem:
        raise ServerUnreachable(str(problem)) from problem


def _open(server: str, plan: Sequence[PlannedCapture], parts: TapParts) -> TopicsSession:
    look = look_at_cluster(plan)
    clusters, looks = look.clusters, look.topics
    writer = parts.changelog.writer(producer_of(server))
    position = writer.position()
    stored = TopicsState() if position is None else TopicsState.from_json(position)

    stops = moved_captures(server, plan) | forgotten_stops(stored.stopped, plan)
    heard = [each for each in plan if each.url in clusters]
    stops |= _stops_of_topics(server, [each for each in heard if goes_on(each, stops)], stored, looks)
    captured = [each for each in heard if goes_on(each, stops)]
    topics = _captured_topics(server, captured, clusters, parts)
    unlearned = _learn([each for each in captured if not each.is_live], topics, clusters, looks)
    unheard = [each for each in plan if each.url in look.silent and goes_on(each, stops)]
    waits = {each.spec.topic: look.silent[each.url] for each in unheard} | unlearned
    captured = [each for each in captured if each.spec.topic not in waits]
    begun = [each for each in captured if not each.is_live]
    state = _state(plan, stored, looks, stops, waits)

    keep_stored_counts(server, plan, stored.counts, now=parts.clock())
    writer.commit([], state.as_json())
    for each in begun:
        _note_begun(server, each, state.places[each.spec.topic], parts)
    keep_stops(plan, stops, now=parts.clock())
    if waits and not captured:
        raise ServerUnreachable(next(iter(waits.values())))

    readers = _open_readers(clusters, captured, state)
    own = {each.spec.topic: topics[each.spec.topic] for each in captured}
    tap = TopicsTap(readers, writer, own, state, clock=parts.clock, monotonic=parts.monotonic)
    ends: dict[tuple[str, str], Mapping[int, int]] = {
        (each.url, each.spec.table): looks[each.spec.topic].ends for each in captured
    }
    behind = {*waits, *(_behind_before(server) & own.keys())}
    again, opens_again_at = LooksAgain(unheard, parts.monotonic), parts.monotonic() + OPEN_AGAIN_S if unlearned else inf
    return TopicsSession(
        plan, parts, clusters, [reader for reader, _ in readers], tap, ends, waits, again, opens_again_at, behind
    )


def _behind_before(server: str) -> set[str]:
    """Of the session before, which others may have been caught up without."""
    known = TapServer.objects.filter(address=server).first()
    return set() if known is None else {*known.place.get(BEHIND, ())}


def _stops_of_topics(
    server: str, plan: Sequence[PlannedCapture], stored: TopicsState, looks: Mapping[str, TopicLook]
) -> dict[str, str]:
    """By topic of the changelog, why its capture cannot go on, or begin."""
    stops = {}
    for each in plan:
        topic, look = each.spec.topic, looks[each.spec.topic]
        place = stored.places.get(topic)
        if not each.is_live:
            why = f"There is no topic `{each.spec.table}` that the account may describe." if look.id is None else ""
            why = why or (_why_no_beginning(each, look))
        elif place is None or place.load != each.spec.load:
            why = f"The changelog has no place of the tap of {server} in `{each.spec.table}`: it is another one, or was emptied."
        else:
            why = why_cannot_go_on(place, look.id, look.bounds)
        if why:
            stops[topic] = f"{why} {LOAD_AGAIN}"
    return stops


def _why_no_beginning(planned: PlannedCapture, look: TopicLook) -> str:
    try:
        begin = _begin_of(planned)
    except ValueError as problem:
        return f"The feed's option `topic_begin` is {planned.options.get('topic_begin')!r:.60}. {problem}"
    for partition, offset in begin.offsets.items():
        bounds = look.bounds.get(partition)
        if bounds is None:
            return f"The feed's option `topic_begin` names partition {partition}, and `{planned.spec.table}` has {len(look.bounds)}."
        if not bounds.first <= offset <= bounds.next:
            return (
                f"The feed's option `topic_begin` names offset {offset:,} of partition {partition}, and `{planned.spec.table}` has {bounds.first:,} to {bounds.next:,} "
                "there. Name one of these, or earliest."
            )
    return ""


def _begin_of(planned: PlannedCapture) -> TopicBegin:
    """Raises ValueError."""
    return parse_begin(planned.options.get("topic_begin", EARLIEST))


def _state(
    plan: Sequence[PlannedCapture],
    stored: TopicsState,
    looks: Mapping[str, TopicLook],
    stops: Mapping[str, str],
    waits: Mapping[str, str],
) -> TopicsState:
    """What is stopped keeps its place no longer: a capture that is begun again begins anew. What waits keeps it."""
    state = TopicsState(stopped=dict(stored.stopped), counts=stored.counts or {})
    for each in plan:
        topic = each.spec.topic
        if not goes_on(each, stops):
            state.stopped[topic] = each.spec.load
            continue
        if topic in waits:
            state.places |= {topic: stored.places[topic]} if topic in stored.places else {}
            continue
        look = looks[topic]
        state.stopped.pop(topic, None)
        assert look.id is not None
        if each.is_live:
            state.places[topic] = replace(stored.places[topic], topic_id=look.id)
            state.places[topic].add_partitions(look.bounds)
        else:
            state.places[topic] = TopicPlace(each.spec.load, each.spec.table, look.id, _first_offsets(each, look))
    return state


def _first_offsets(planned: PlannedCapture, look: TopicLook) -> dict[int, int]:
    begin, bounds = _begin_of(planned), look.bounds
    if begin.at is not None:
        cluster = open_cluster(planned.url)
        return cluster.offsets_at(planned.spec.table, [*bounds], begin.at)
    if begin.word == LATEST:
        return look.ends
    return {partition: begin.offsets.get(partition, each.first) for partition, each in bounds.items()}


def _captured_topics(
    server: str, plan: Sequence[PlannedCapture], clusters: Mapping[str, TopicCluster], parts: TapParts
) -> dict[str, CapturedTopic]:
    versions = versions_by_topic(plan, parts.clock)
    urls = {url: cluster.address.registry for url, cluster in clusters.items()}
    registries = {registry: SchemaRegistry(registry, parts.monotonic) for registry in urls.values()}
    topics = {}
    for each in plan:
        has_message_key = each.options.get("topic_key") == KEY_OF_MESSAGE
        topics[each.spec.topic] = _captured_topic(
            server, each.spec, has_message_key, versions, registries[urls[each.url]], parts
        )
    return topics


def _captured_topic(
    server: str,
    spec: CaptureSpec,
    has_message_key: bool,
    versions: VersionsByTopic,
    registry: SchemaRegistry,
    parts: TapParts,
) -> CapturedTopic:
    source = f"{server.replace('kafka:', 'kafka://', 1)}/{spec.table}"

    def new_encoder(schema: SubjectSchema) -> Encoder:
        return Encoder(schema, spec.record_key, source, "", parts.clock)

    topic = CapturedTopic(spec, has_message_key, versions, registry.schema, new_encoder)
    topic.begin_with(versions.by_topic[spec.topic].newest(spec.topic))
    return topic


def _learn(
    begun: Sequence[PlannedCapture],
    topics: Mapping[str, CapturedTopic],
    clusters: Mapping[str, TopicCluster],
    looks: Mapping[str, TopicLook],
) -> dict[str, str]:
    """So that the first version has the columns that onboarding has shown, and types that hold what is there. By topic, why it has to wait."""
    waits = {}
    for each in begun:
        topic = each.spec.topic
        bounds = {partition: (it.first, it.next) for partition, it in looks[topic].bounds.items()}
        try:
            topics[topic].learn(sample_topic(clusters[each.url], each.spec.table, bounds))
        except RegistrySilent as problem:
            waits[topic] = _WAITS.format(problem)
    return waits


def _note_begun(server: str, planned: PlannedCapture, place: TopicPlace, parts: TapParts) -> None:
    spec, reader = planned.spec, parts.changelog.reader()
    begins_at = {
        name: {partition: bounds.next for partition, bounds in reader.bounds(name).items()}
        for name in (spec.topic, spec.topic + ERRORS_SUFFIX)
    }
    states.note_captured(
        spec.topic,
        spec.load,
        since=offsets_text(place.next),
        table=table_name(server, planned),
        columns={},
        now=parts.clock(),
        changelog_from=begins_at,
    )


def _open_readers(
    clusters: Mapping[str, TopicCluster], captured: Sequence[PlannedCapture], state: TopicsState
) -> list[tuple[TopicReader, frozenset[str]]]:
    """One for each account. Closed again where one of them cannot be opened."""
    own = defaultdict[str, list[str]](list)
    for each in captured:
        own[each.url].append(each.spec.topic)
    readers = list[tuple[TopicReader, frozenset[str]]]()
    try:
        for url, topics in own.items():
            places = partitions_of([state.places[topic] for topic in topics])
            readers.append((TopicReader(clusters[url], places), frozenset(topics)))
    except BaseException:
        for reader, _ in readers:
            reader.close()
        raise
    return readers
