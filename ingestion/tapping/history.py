"""Has a server the transactions of which a part was captured? Two servers may give one name to two transactions: what has it is known by its time, too."""

from __future__ import annotations

from collections.abc import Mapping

from ingestion.capture.binlog.events import Begin, BinlogError
from ingestion.capture.binlog.stream import BinlogStream, ServerAddress
from ingestion.capture.binlog_files import Place
from ingestion.capture.tap.position import TapPosition
from ingestion.tapping import source_server
from ingestion.tapping.parts import TapParts
from ingestion.tapping.replica_address import replica_address
from ingestion.tapping.source_server import ServerLook

PROOF_S = 30.0
"""Within which the server shows a transaction."""


def differences(server: str, places: Mapping[str, TapPosition], look: ServerLook, parts: TapParts) -> dict[str, str]:
    """By topic, why what comes after its place at the server is not what is to come next, in words that follow on the server's name; those of which it
    is go without. Each place is looked at once. Raises BinlogError, ServerUnreachable."""
    address = replica_address(look.url, server, instance_key=parts.instance_key)
    reasons = {place.gtid: _difference(place, look, address, parts) for place in places.values()}
    return {topic: reasons[place.gtid] for topic, place in places.items() if reasons[place.gtid]}


def _difference(place: TapPosition, look: ServerLook, address: ServerAddress, parts: TapParts) -> str:
    files = look.files
    match files.place_of(place.gtid):
        case Place.PURGED:
            return (
                f"has removed changes from its binlog before they were captured, after {place.gtid or 'its beginning'}."
            )
        case Place.UNKNOWN:
            return f"does not have the transaction {place.gtid}, which was captured last; the newest in its binlog is {files.newest or 'none'}."
    if not place.gtid:
        return ""
    other = f"does not have the transaction {place.gtid}, which was captured last: it is another database, was set up anew, or went its own way"
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
