"""From which place on a server is tapped, and which captures cannot be gone on with from there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ingestion.capture.binlog_files import BinlogFiles, Place
from ingestion.capture.tap.position import TapPosition, TapState, joined
from ingestion.captures.hidden_columns import changed_columns
from ingestion.captures.servers import PlannedCapture

LOAD_AGAIN = "Load the dataset again, with `replace`."
PURGE_WARNING = (
    "What the tap has not read yet is in the oldest file of the binlog, which the server removes next. Keep the binlog for longer "
    "(`binlog_expire_logs_seconds`), or the datasets of this server have to be loaded again."
)
STATEMENT_WARNING = (
    "A session with another `binlog_format` than ROW has written the transaction {}. The datasets of the tables that it names are stopped; tables that a view "
    "or a trigger has changed by it are not in the binlog: load their datasets again, with `replace`, and let sessions write with ROW."
)


class Untappable(RuntimeError):
    """The server cannot be tapped as it is; the message says why, and what to do."""


@dataclass(frozen=True)
class Beginning:
    """`stops`: by topic, why its capture cannot go on in its load. `places`: by topic, where those are that are not at `position`, but beyond it."""

    position: TapPosition
    stops: Mapping[str, str] = field(default_factory=dict)
    warning: str = ""
    places: Mapping[str, TapPosition] = field(default_factory=dict)


def table_name(server: str, planned: PlannedCapture) -> str:
    """`host:port/database.table`; of a cluster its topic is behind it."""
    spec = planned.spec
    return f"{server}/{spec.database}.{spec.table}" if spec.database else f"{server}/{spec.table}"


def former_server(server: str, planned: PlannedCapture) -> str:
    """From which the same table of the same database was captured in this load; empty: from this one, or it is another table."""
    former, _, table = planned.capture.captured_table.partition("/")
    is_same_table = table == table_name("", planned).removeprefix("/") and planned.spec.database != ""
    return former if planned.is_live and is_same_table and former != server else ""


def moved_captures(server: str, plan: Sequence[PlannedCapture]) -> dict[str, str]:
    """By topic, why: what was captured in this load is another table. The same one of another server may be gone on with."""
    return {
        planned.spec.topic: f"The dataset was captured from {planned.capture.captured_table}, and its feed reads {table_name(server, planned)} now. {LOAD_AGAIN}"
        for planned in plan
        if planned.is_live
        and planned.capture.captured_table != table_name(server, planned)
        and not former_server(server, planned)
    }


def waits_for_accounts(plan: Sequence[PlannedCapture], silent: Mapping[str, str]) -> dict[str, str]:
    """By topic, why its capture does not begin yet: nobody asks for its table with the account of somebody else. `silent`: by URL why nothing is asked by it."""
    return {each.spec.topic: silent[each.url] for each in plan if each.url in silent and not each.is_live}


def otherwise_hidden(plan: Sequence[PlannedCapture]) -> dict[str, str]:
    """By topic, why: rows of this load have, or have not, what its columns are to show now."""
    changes = {each.spec.topic: changed_columns(each.capture, each.spec.hidden) for each in plan if each.is_live}
    return {
        topic: f"Since the dataset was loaded other columns are left out, hashed or masked: {changed}. Nothing more is captured until all rows have them so. "
        f"{LOAD_AGAIN}"
        for topic, changed in changes.items()
        if changed
    }


def beginning(
    server: str,
    stored: TapState | None,
    files: BinlogFiles,
    live: Sequence[str],
    arrived: Mapping[str, TapPosition] | None = None,
) -> Beginning:
    """`stored`: of the changelog; None: nobody has tapped this server. `live`: topics whose changes must not be lost. `arrived`: by topic, where those go
    on that come from another server. Raises Untappable."""
    places, stops = dict(arrived or {}), dict[str, str]()
    if stored is None:
        why = f"The changelog has no place of the tap of {server}: it is another one, or was emptied. {LOAD_AGAIN}"
        stops = dict.fromkeys(live, why)
    else:
        for topic in live:
            places[topic] = place = stored.place_of(topic)
            if _is_purged(server, place.gtid, files):
                del places[topic]
                stops[topic] = (
                    f"The server {server} has removed changes from its binlog before they were captured, after {place.gtid or 'its beginning'}. {LOAD_AGAIN}"
                )
    if not places:
        return Beginning(TapPosition(files.newest), stops)  # nobody needs what came before
    position, beyond = joined(places)
    if stored is not None and position == replace(stored.position, begun="", taken={}):
        position = stored.position
        beyond = {topic: place for topic, place in beyond.items() if topic not in live or topic in stored.places}
    is_next_to_go = files.place_of(position.gtid) is Place.NEXT_TO_GO
    return Beginning(position, stops, PURGE_WARNING if is_next_to_go else "", beyond)


def with_new(begun: Beginning, topics: Iterable[str], newest: str) -> Beginning:
    """`topics` begin at `newest`, which was asked for after a look at their tables: what came before is their loads', and of tables as they may have been."""
    place = TapPosition(newest)
    beyond = dict.fromkeys(topics, place) if place.sequence > begun.position.sequence else {}
    return replace(begun, places={**begun.places, **beyond})


def _is_purged(server: str, gtid: str, files: BinlogFiles) -> bool:
    """Raises Untappable."""
    place = files.place_of(gtid)
    if place is Place.UNKNOWN:
        raise Untappable(
            f"The server {server} does not know the transaction {gtid}, which was captured last; its newest is {files.newest or 'none'}. If it is a "
            "replica that is behind, wait. If it was set up anew or restored, load all of its datasets again, with `replace`."
        )
    return place is Place.PURGED
