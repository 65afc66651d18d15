"""Captures whose connection leads to another server than before: they go on there if it has the transaction that was captured last, and are stopped if it
never will.

The tap of the former server is shut out first, and the changelog keeps of it which captures are not its any more: so no change is captured by both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ingestion.capture.binlog.events import Begin, BinlogError
from ingestion.capture.binlog.stream import BinlogStream, ServerAddress
from ingestion.capture.binlog_files import BinlogFiles, Place
from ingestion.capture.tap.position import Keys, TapPosition, TapState
from ingestion.captures import moves
from ingestion.captures.changelog import producer_of
from ingestion.captures.servers import PlannedCapture
from ingestion.models import TapServer
from ingestion.tapping import source_server
from ingestion.tapping.beginning import LOAD_AGAIN, former_server
from ingestion.tapping.parts import TapParts
from ingestion.tapping.replica_address import replica_address
from ingestion.tapping.source_server import ServerLook

PROOF_S = 30.0
"""Within which the server shows a transaction."""


class MovePending(RuntimeError):
    """The captures cannot go on at the server yet. Nothing is lost: it is tried again."""


@dataclass(frozen=True)
class Arrived:
    """By topic, where it goes on, or why it cannot."""

    planned: Sequence[PlannedCapture] = ()
    places: Mapping[str, TapPosition] = field(default_factory=dict)
    stops: Mapping[str, str] = field(default_factory=dict)
    keys: Keys = field(default_factory=dict)


def take_over(server: str, plan: Sequence[PlannedCapture], look: ServerLook, parts: TapParts) -> Arrived:
    """Whatever of the plan was captured from other servers. Until `finish` it may be done again. Raises MovePending, BinlogError, ServerUnreachable,
    ChangelogError."""
    by_former = defaultdict[str, list[PlannedCapture]](list)
    for planned in plan:
        if former := former_server(server, planned):
            by_former[former].append(planned)
    require_current(server, [each for group in by_former.values() for each in group])
    for former in by_former:
        _require_told_place(former, server, look.files)
    arrivals = [_taken_from(former, planned, server, look, parts) for former, planned in by_former.items()]
    return Arrived(
        [each for arrived in arrivals for each in arrived.planned],
        {topic: place for arrived in arrivals for topic, place in arrived.places.items()},
        {topic: why for arrived in arrivals for topic, why in arrived.stops.items()},
        {topic: key for arrived in arrivals for topic, key in arrived.keys.items()},
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


def _require_told_place(former: str, server: str, files: BinlogFiles) -> None:
    """Before its tap is disturbed, which may capture others there."""
    told = TapServer.objects.filter(address=former).values_list("position", flat=True).first()
    if told:
        _require_reached(former, server, told, files)


def _require_reached(former: str, server: str, gtid: str, files: BinlogFiles) -> None:
    """Raises MovePending."""
    taken, newest = TapPosition(gtid), TapPosition(files.newest)
    if taken.sequence > newest.sequence:
        raise MovePending(
            f"{server} does not have the transaction {gtid} yet, which was captured last from {former}; the newest in its binlog is {newest.gtid or 'none'}. "
            "If it replicates from there, with `log_slave_updates=ON`, the tap goes on when it has it. If it will never have it, because it was "
            "promoted before or is another database, load the datasets of the connection again, with `replace`."
        )


def _taken_from(
    former: str, planned: Sequence[PlannedCapture], server: str, look: ServerLook, parts: TapParts
) -> Arrived:
    writer = parts.changelog.writer(producer_of(former))
    position = writer.position()
    if position is None:
        why = f"The changelog has no place of the tap of {former}: it is another one, or was emptied. {LOAD_AGAIN}"
        return Arrived(planned, stops={each.spec.topic: why for each in planned})
    state = TapState.from_json(position)
    stops = {
        each.spec.topic: f"The capture was stopped earlier. {LOAD_AGAIN}"
        for each in planned
        if state.stopped.get(each.spec.topic) == each.spec.load
    }
    places = {each.spec.topic: state.place_of(each.spec.topic) for each in planned if each.spec.topic not in stops}
    address = replica_address(look.url, server, instance_key=parts.instance_key)
    reasons = {place.gtid: _difference(former, server, place, look, address, parts) for place in places.values()}
    stops |= {topic: f"{reasons[place.gtid]} {LOAD_AGAIN}" for topic, place in places.items() if reasons[place.gtid]}
    places = {topic: place for topic, place in places.items() if topic not in stops}
    loads = {each.spec.topic: each.spec.load for each in planned if each.spec.topic in places}
    marked = replace(state, places={**state.places, **places}, moved={**state.moved, **loads})
    writer.commit([], marked.as_json())
    return Arrived(planned, places, stops, {topic: state.keys[topic] for topic in places if topic in state.keys})


def _difference(
    former: str, server: str, place: TapPosition, look: ServerLook, address: ServerAddress, parts: TapParts
) -> str:
    """Why what comes after `place` at `server` is not what comes after it at `former`; empty: it is. Raises MovePending, BinlogError."""
    files = look.files
    _require_reached(former, server, place.gtid, files)
    moved = f"The connection led to {former} and leads to {server} now, which"
    match files.place_of(place.gtid):
        case Place.PURGED:
            return f"{moved} has removed changes from its binlog before they were captured, after {place.gtid or 'its beginning'}."
        case Place.UNKNOWN:
            return f"{moved} writes in another GTID domain ({files.newest}) than that of {place.gtid}, which was captured last."
    if not place.gtid:
        return ""
    other = f"{moved} does not have the transaction {place.gtid}, which was captured last: it is another database, was set up anew, or went its own way"
    if not files.may_have(place.gtid):
        return f"{other} before it had got it. It has {files.written}."
    shown = _shown(place, look, address, parts)
    if shown is None:
        return ""
    if str(shown.gtid) != place.gtid:
        return f"{other}. It has {shown.gtid} in that place."
    at = shown.at.isoformat()
    return (
        f"{other}: its {shown.gtid} was committed at {at}, and not at {place.at}." if place.at not in ("", at) else ""
    )


def _shown(place: TapPosition, look: ServerLook, address: ServerAddress, parts: TapParts) -> Begin | None:
    """What the server has where `place.gtid` ought to be. None: that is before its first file, which names it."""
    if place.before and look.files.may_have(place.before):
        try:
            return _transaction_at(address, place.before, place.sequence, parts)
        except BinlogError:
            pass  # it does not have that one; what it has instead is found from the beginning of the file
    start = source_server.start_before(look.url, place.gtid)
    return None if start == place.gtid else _transaction_at(address, start, place.sequence, parts)


def _transaction_at(address: ServerAddress, after: str, sequence: int, parts: TapParts) -> Begin:
    """The first one after `after` that has this number or a greater one."""
    stream = BinlogStream(address, after, lambda database, table: False)
    try:
        stream.open()
        until = parts.monotonic() + PROOF_S
        while parts.monotonic() < until:
            for event in stream.poll():
                if isinstance(event, Begin) and event.gtid.sequence >= sequence:
                    return event
    finally:
        stream.close()
    raise BinlogError(
        f"{address!r} has not shown within {PROOF_S:g} s which transaction it has as number {sequence:,}."
    )
