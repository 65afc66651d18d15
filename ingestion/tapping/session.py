"""One reading of a server's binlog for a plan: from its opening, where captures are taken on, to the first error or the next plan."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from ingestion.capture.binlog.stream import BinlogStream
from ingestion.capture.binlog_files import Place
from ingestion.capture.source_counts import HourCounts
from ingestion.capture.tap.captured_rows import CapturedRows, captured_rows
from ingestion.capture.tap.captured_table import NotCaptured
from ingestion.capture.tap.position import KnownTables, TapState
from ingestion.capture.tap.tap import Tap
from ingestion.captures import moves, states
from ingestion.captures.changelog import producer_of
from ingestion.captures.servers import PlannedCapture, current_plan, urls_of
from ingestion.changelog import ChangelogWriter
from ingestion.heatpipe.encoder import Encoder
from ingestion.lake.captured import source_hours
from ingestion.models import SchemaSubject
from ingestion.schemas.captured_versions import CapturedVersions, VersionsByTopic
from ingestion.tapping import moving, source_server
from ingestion.tapping.beginning import (
    LOAD_AGAIN,
    PURGE_WARNING,
    STATEMENT_WARNING,
    Beginning,
    beginning,
    moved_captures,
    otherwise_hidden,
    table_name,
    waits_for_accounts,
    with_new,
)
from ingestion.tapping.history import differences
from ingestion.tapping.parts import TapParts
from ingestion.tapping.replica_address import replica_address
from ingestion.tapping.source_server import ServerLook, TableLook
from ingestion.tapping.tables import look_at_plan

logger = logging.getLogger(__name__)
ACTOR = "tap"
"""Who registers versions of schemas, in the audit log."""
QUIET_S, RECENT = 1.0, timedelta(seconds=10)
"""A server that has more sends it within the first; a transaction that was committed within the second is the newest, or about to be followed by it."""
LOOK_FOR_MOVES_S = 30.0
"""Whether captures can go on here that wait for it."""
LISTEN_S = 30.0
"""Whether an account gets through that did not."""
LOOK_AT_FILES_S = 300.0
"""While it is behind: what the server is about to remove."""


class PlanOutdated(Exception):
    """What is captured is not what it was: another session takes it from here."""


@dataclass
class TapSession:
    """Close it, whatever becomes of it. What `open_session` has begun."""

    server: str
    plan: Sequence[PlannedCapture]
    parts: TapParts
    look: ServerLook
    purge_warning: str
    versions: VersionsByTopic
    stream: BinlogStream
    stopped: set[str]
    """Topics."""
    waits: tuple[str, ...] = ()
    """For what captures wait that come from another server."""
    statement_warning: str = ""
    tap: Tap = field(init=False)
    _altered: set[str] = field(default_factory=set)
    _opened_at: float = field(init=False)
    _looked_at: float = field(init=False)
    """Since when the files of the binlog are known, by the monotonic clock."""
    _listened_at: float = field(init=False)
    """When accounts that did not get through were tried last, by the same clock."""
    _moved_at: float = field(init=False)
    """When it took a transaction last, by the same clock; when it was opened where it has taken none."""

    def __post_init__(self) -> None:
        self._opened_at = self._looked_at = self._moved_at = self._listened_at = self.parts.monotonic()

    def step(self) -> None:
        """Takes what has come. Raises BinlogError, ChangelogError, ServerUnreachable, PlanOutdated."""
        if self.waits and self.parts.monotonic() >= self._opened_at + LOOK_FOR_MOVES_S:
            raise PlanOutdated
        if self.look.silent and self.parts.monotonic() >= self._listened_at + LISTEN_S:
            self._listened_at = self.parts.monotonic()
            if any(map(source_server.is_heard, self.look.silent)):
                raise PlanOutdated
        before = self.position
        self.tap.step()
        if self.position != before:
            self._moved_at = self.parts.monotonic()
        if self._altered:
            self._register_altered()
        if self.is_caught_up:
            self.purge_warning = ""
        elif self.parts.monotonic() >= self._looked_at + LOOK_AT_FILES_S:
            self._looked_at = self.parts.monotonic()
            place = source_server.read_files(self.look.url).place_of(self.position)
            self.purge_warning = PURGE_WARNING if place is Place.NEXT_TO_GO else ""

    def close(self) -> None:
        self.stream.close()

    @property
    def position(self) -> str:
        return self.tap.position.gtid

    @property
    def place(self) -> dict[str, Any]:
        """For people: file and offset of the binlog up to where it was read, and within a transaction its GTID and how many rows were taken, by topic."""
        position, stream = self.tap.position, self.stream
        return {"file": stream.file, "offset": stream.offset, "begun": position.begun, "taken": dict(position.taken)}

    @property
    def event_at(self) -> datetime | None:
        return self.tap.event_at

    @property
    def is_caught_up(self) -> bool:
        """Nothing waits here, and nothing is on its way: over a slow line there is never much that waits, however much is to come."""
        return self.stream.is_drained and (self._is_recent or self.parts.monotonic() >= self._moved_at + QUIET_S)

    @property
    def _is_recent(self) -> bool:
        return self.event_at is not None and self.parts.clock() - self.event_at < RECENT

    @property
    def captured(self) -> int:
        return len(self.plan) - len(self.stopped)

    @property
    def counts(self) -> HourCounts:
        return self.tap.counts

    def forget_counts_before(self, hour: str) -> None:
        self.tap.forget_counts_before(hour)

    @property
    def warnings(self) -> list[str]:
        own = [*self.look.warnings, *filter(None, [self.purge_warning, self.statement_warning])]
        return [*dict.fromkeys([*own, *self.waits, *self.look.silent.values()])]

    def table_stopped(self, topic: str, reason: str) -> None:
        self.stopped.add(topic)
        planned = next(each for each in self.plan if each.spec.topic == topic)
        keep_stops([planned], {topic: reason}, now=self.parts.clock())

    def table_altered(self, topic: str) -> None:
        self._altered.add(topic)

    def written_by_statement(self, transaction: str) -> None:
        self.statement_warning = STATEMENT_WARNING.format(transaction)
        logger.warning("%s: %s", self.server, self.statement_warning)

    def _register_altered(self) -> None:
        """A table without writes has its version as well, but where nobody can ask for it. What cannot be registered stops the table with its next rows."""
        for planned in self.plan:
            if planned.spec.topic in self._altered - self.stopped and planned.url not in self.look.silent:
                spec = planned.spec
                name = (spec.database, spec.table)
                look = source_server.look_at_tables(planned.url, [name])[name]
                if look.problems or spec.hidden.shown_by(look.generated):
                    raise PlanOutdated
                try:
                    self._captured_table(planned, look)
                except NotCaptured as problem:
                    logger.info("The new definition of %s is not registered: %s", name, problem)
        self._altered.clear()

    def _captured_table(self, planned: PlannedCapture, look: TableLook) -> None:
        if look.definition is not None:
            captured_rows(planned.spec, look.definition, self.versions, self.look.charsets)


def open_session(server: str, plan: Sequence[PlannedCapture], parts: TapParts) -> TapSession:
    """`server`: `host:port`. Captures that are new in the plan begin here: first the changelog has the place, then the capture says so.

    Raises Untappable, MovePending, ServerUnreachable, BinlogError, ChangelogError.
    """
    plan = current_plan(plan)
    look = source_server.look_at_server(urls_of(plan))
    versions = versions_by_topic(plan, parts.clock)
    arrived = moving.take_over(server, plan, look, parts)
    waits = {**arrived.waits, **waits_for_accounts(plan, look.silent)}
    plan = _without_waiting(plan, waits)
    writer = parts.changelog.writer(producer_of(server))
    position = writer.position()
    stored = None if position is None else TapState.from_json(position)

    forgotten = forgotten_stops({} if stored is None else stored.stopped, plan)
    stops = moved_captures(server, plan) | otherwise_hidden(plan) | forgotten | dict(arrived.stops)
    _require_own(server, plan, stored)
    comes = {each.spec.topic for each in arrived.planned}
    live = [each.spec.topic for each in plan if each.is_live and each.spec.topic not in {*stops, *comes}]
    places = {topic: place for topic, place in arrived.places.items() if topic not in stops}
    others = _other_histories(server, stored, live, look, parts)
    stops |= others
    live = [topic for topic in live if topic not in others]
    begun = beginning(server, stored, look.files, live, places)
    stops |= begun.stops
    tables = look_at_plan([each for each in plan if goes_on(each, stops)], look, versions)
    stops |= tables.stops
    captured = [each for each in plan if goes_on(each, stops)]
    if new := [each.spec.topic for each in captured if not each.is_live]:
        begun = with_new(begun, new, source_server.newest_gtid(look.url))

    keep_stored_counts(server, plan, None if stored is None else stored.counts, now=parts.clock())
    state = _state(server, begun, stored, plan, stops, {**tables.known, **arrived.known})
    writer.commit([], state.as_json())
    moving.finish(server, arrived, begun.position, parts)
    _note_begun(server, captured, begun, now=parts.clock())
    keep_stops(plan, stops, now=parts.clock())

    stream = _new_stream(server, captured, look, parts, begun.position.gtid)
    stopped = {each.spec.topic for each in plan if not goes_on(each, stops)}
    waiting = tuple(dict.fromkeys(arrived.waits.values()))
    session = TapSession(server, plan, parts, look, begun.warning, versions, stream, stopped, waiting)
    session.tap = _new_tap(session, writer, state)
    try:
        stream.open()
    except BaseException:
        stream.close()
        raise
    return session


def _new_tap(session: TapSession, writer: ChangelogWriter, state: TapState) -> Tap:
    parts = session.parts
    return Tap(
        session.stream,
        writer,
        [each.spec for each in session.plan],
        start=state,
        versions=session.versions,
        charsets=session.look.charsets,
        new_encoder=lambda table: _encoder(session.server, table, parts.clock),
        observer=session,
        clock=parts.clock,
        monotonic=parts.monotonic,
        pause=parts.pause,
    )


def _new_stream(
    server: str, captured: Sequence[PlannedCapture], look: ServerLook, parts: TapParts, since: str
) -> BinlogStream:
    """Of the tables that are captured; nobody has opened it yet."""
    tables = {(each.spec.database, each.spec.table) for each in captured}
    address = replica_address(look.url, server, instance_key=parts.instance_key)
    return BinlogStream(address, since, lambda database, table: (database, table) in tables, look.charsets)


def versions_by_topic(plan: Sequence[PlannedCapture], clock: Callable[[], datetime]) -> VersionsByTopic:
    """A subject stays that of the team for which the tap has registered it, also where the dataset has another owner since."""
    own = SchemaSubject.objects.filter(name__in=[each.spec.topic for each in plan], versions__registered_by=ACTOR)
    teams = {subject.name: subject.team for subject in own.select_related("team").distinct()}
    return VersionsByTopic(
        {each.spec.topic: CapturedVersions(teams.get(each.spec.topic, each.team), ACTOR, clock) for each in plan}
    )


def goes_on(planned: PlannedCapture, stops: Mapping[str, str]) -> bool:
    return not planned.capture.is_stopped and planned.spec.topic not in stops


def forgotten_stops(stopped: Mapping[str, int], plan: Sequence[PlannedCapture]) -> dict[str, str]:
    """Those that the changelog knows of and the database does not: it was restored, or not reached."""
    return {
        each.spec.topic: f"The capture was stopped earlier. {LOAD_AGAIN}"
        for each in plan
        if stopped.get(each.spec.topic) == each.spec.load and not each.capture.is_stopped
    }


def _without_waiting(plan: Sequence[PlannedCapture], waits: Mapping[str, str]) -> list[PlannedCapture]:
    """Who waits keeps no other waiting. Raises MovePending where nobody is left."""
    others = [each for each in plan if each.spec.topic not in waits]
    if waits and not others:
        raise moving.MovePending(next(iter(waits.values())))
    return others


def _other_histories(
    server: str, stored: TapState | None, live: Sequence[str], look: ServerLook, parts: TapParts
) -> dict[str, str]:
    """By topic, why: behind the same address is another server than before, and it does not have what was captured last. One that is behind may get it."""
    places = {} if stored is None else {topic: stored.place_of(topic) for topic in live}
    to_prove = {
        topic: place
        for topic, place in places.items()
        if place.before and look.files.place_of(place.gtid) in (Place.KEPT, Place.NEXT_TO_GO)
    }
    reasons = differences(server, to_prove, look, parts)
    return {topic: f"The server {server} {why} {LOAD_AGAIN}" for topic, why in reasons.items()}


def _require_own(server: str, plan: Sequence[PlannedCapture], stored: TapState | None) -> None:
    """Those that another server's tap was about to take over are captured here if their connections lead here again. Raises MovePending."""
    moved = {} if stored is None else stored.moved
    moving.require_current(server, [each for each in plan if moved.get(each.spec.topic) == each.spec.load])


def _state(
    server: str,
    begun: Beginning,
    stored: TapState | None,
    plan: Sequence[PlannedCapture],
    stops: Mapping[str, str],
    known: KnownTables,
) -> TapState:
    """Those whose connections lead elsewhere by now wait where they are, for the server that they lead to."""
    stored = stored if stored is not None else TapState(begun.position)
    stopped = dict(stored.stopped) | {each.spec.topic: each.spec.load for each in plan if not goes_on(each, stops)}
    planned = {each.spec.topic for each in plan}
    left = {topic: load for topic, load in moves.live_topics(server).items() if topic not in planned}
    places = {**begun.places, **{topic: stored.place_of(topic) for topic in left}}
    moved = {topic: load for topic, load in left.items() if stored.moved.get(topic) == load}
    return TapState(begun.position, stopped, {**stored.known, **known}, places, moved, stored.counts or {})


def keep_stored_counts(
    server: str, plan: Sequence[PlannedCapture], counts: HourCounts | None, *, now: datetime
) -> None:
    """Those of a process that has ended before it told them. Before the changelog says that it is counted from now on."""
    source_hours.note_counting([each.spec.topic for each in plan], anew=counts is None, now=now)
    source_hours.keep_counts(server, counts or {})


def _note_begun(server: str, plan: Iterable[PlannedCapture], begun: Beginning, *, now: datetime) -> None:
    for planned in plan:
        if not planned.is_live:
            spec = planned.spec
            states.note_captured(
                spec.topic,
                spec.load,
                since=begun.places.get(spec.topic, begun.position).gtid,
                table=table_name(server, planned),
                columns=spec.hidden.as_json(),
                now=now,
            )


def keep_stops(plan: Sequence[PlannedCapture], stops: Mapping[str, str], *, now: datetime) -> None:
    reasons = {}
    for planned in plan:
        spec, capture = planned.spec, planned.capture
        why = stops.get(spec.topic, "")
        if why:
            states.note_stopped(spec.topic, spec.load, why)
        reasons[planned.dataset] = why or (capture.stopped_why if capture.is_stopped else "")
    states.tell_stops(reasons, now=now)


def _encoder(server: str, table: CapturedRows, clock: Callable[[], datetime]) -> Encoder:
    source = f"mysql://{server}/{table.spec.database}.{table.spec.table}"
    return Encoder(table.schema, table.record_key, source, "", clock)
