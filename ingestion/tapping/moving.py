"""Captures whose connection leads to another server than before: they go on there if it has the transaction that was captured last, and are stopped if it
never will.

The tap of the former server is shut out first, and the changelog keeps of it which captures are not its any more: so no change is captured by both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ingestion.capture.binlog_files import BinlogFiles
from ingestion.capture.tap.position import KnownTables, TapPosition, TapState
from ingestion.captures import moves
from ingestion.captures.changelog import producer_of
from ingestion.captures.servers import PlannedCapture
from ingestion.lake.captured import source_hours
from ingestion.models import TapServer
from ingestion.tapping.beginning import LOAD_AGAIN, former_server
from ingestion.tapping.history import differences
from ingestion.tapping.parts import TapParts
from ingestion.tapping.source_server import ServerLook


class MovePending(RuntimeError):
    """The captures cannot go on at the server yet. Nothing is lost: it is tried again."""


@dataclass(frozen=True)
class Arrived:
    """By topic, where it goes on, why it cannot, or for what it `waits`."""

    planned: Sequence[PlannedCapture] = ()
    places: Mapping[str, TapPosition] = field(default_factory=dict)
    stops: Mapping[str, str] = field(default_factory=dict)
    known: KnownTables = field(default_factory=dict)
    waits: Mapping[str, str] = field(default_factory=dict)


def take_over(server: str, plan: Sequence[PlannedCapture], look: ServerLook, parts: TapParts) -> Arrived:
    """Whatever of the plan was captured from other servers. Until `finish` it may be done again. Raises MovePending, BinlogError, ServerUnreachable,
    ChangelogError."""
    by_former = defaultdict[str, list[PlannedCapture]](list)
    for planned in plan:
        if former := former_server(server, planned):
            by_former[former].append(planned)
    require_current(server, [each for group in by_former.values() for each in group])
    arrivals = [_taken_from(former, planned, server, look, parts) for former, planned in by_former.items()]
    return Arrived(
        [each for arrived in arrivals for each in arrived.planned],
        {topic: place for arrived in arrivals for topic, place in arrived.places.items()},
        {topic: why for arrived in arrivals for topic, why in arrived.stops.items()},
        {topic: table for arrived in arrivals for topic, table in arrived.known.items()},
        {topic: why for arrived in arrivals for topic, why in arrived.waits.items()},
    )


def require_current(server: str, planned: Sequence[PlannedCapture]) -> None:
    """Raises MovePending."""
    if planned and not moves.leads_to(planned, server):
        raise MovePending(f"A connection that led to {server} was just changed: its datasets go on where it leads now.")


def finish(server: str, arrived: Arrived, position: TapPosition, parts: TapParts) -> None:
    """Once the changelog has the place of the new server. Raises MovePending."""
    planned = [each for each in arrived.planned if each.spec.topic in arrived.places]
    if planned and not moves.note_moved(planned, server, actor="tap", position=position.gtid, now=parts.clock()):
        raise MovePending(f"The connections that led to {server} were changed while their datasets were moved there.")


def _why_behind(former: str, server: str, gtid: str, files: BinlogFiles) -> str:
    """Empty: it is not."""
    taken, newest = TapPosition(gtid), TapPosition(files.newest)
    if taken.sequence <= newest.sequence:
        return ""
    return (
        f"{server} does not have the transaction {gtid} yet, which was captured last from {former}; the newest in its binlog is {newest.gtid or 'none'}. "
        "If it replicates from there, with `log_slave_updates=ON`, the tap goes on when it has it. If it will never have it, because it was "
        "promoted before or is another database, load the datasets of the connection again, with `replace`."
    )


def _waiting(planned: Sequence[PlannedCapture], why: str) -> Arrived:
    return Arrived(waits={each.spec.topic: why for each in planned})


def _taken_from(
    former: str, planned: Sequence[PlannedCapture], server: str, look: ServerLook, parts: TapParts
) -> Arrived:
    position_told = TapServer.objects.filter(address=former).values_list("position", flat=True).first()
    if why := _why_behind(former, server, position_told or "", look.files):
        return _waiting(planned, why)  # before its tap is disturbed, which may capture others there
    writer = parts.changelog.writer(producer_of(former))
    position = writer.position()
    if position is None:
        why = f"The changelog has no place of the tap of {former}: it is another one, or was emptied. {LOAD_AGAIN}"
        return Arrived(planned, stops={each.spec.topic: why for each in planned})
    state = TapState.from_json(position)
    if state.counts is None:
        source_hours.note_counting([each.spec.topic for each in planned], anew=True, now=parts.clock())
    source_hours.keep_counts(former, state.counts or {})
    stops = {
        each.spec.topic: f"The capture was stopped earlier. {LOAD_AGAIN}"
        for each in planned
        if state.stopped.get(each.spec.topic) == each.spec.load
    }
    places = {each.spec.topic: state.place_of(each.spec.topic) for each in planned if each.spec.topic not in stops}
    for place in places.values():
        if why := _why_behind(former, server, place.gtid, look.files):
            return _waiting(planned, why)
    reasons = differences(server, places, look, parts)
    stops |= {
        topic: f"The connection led to {former} and leads to {server} now, which {why} {LOAD_AGAIN}"
        for topic, why in reasons.items()
    }
    places = {topic: place for topic, place in places.items() if topic not in stops}
    loads = {each.spec.topic: each.spec.load for each in planned if each.spec.topic in places}
    marked = replace(state, places={**state.places, **places}, moved={**state.moved, **loads})
    writer.commit([], marked.as_json())
    return Arrived(planned, places, stops, {topic: state.known[topic] for topic in places if topic in state.known})
