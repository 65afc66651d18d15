"""From which place on a server is tapped, and which captures cannot be gone on with from there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ingestion.capture.binlog_files import BinlogFiles, Place
from ingestion.capture.tap.position import TapPosition, TapState
from ingestion.captures.hidden_columns import changed_columns
from ingestion.captures.servers import PlannedCapture

LOAD_AGAIN = "Load the dataset again, with `replace`."
PURGE_WARNING = (
    "What the tap has not read yet is in the oldest file of the binlog, which the server removes next. Keep the binlog for longer "
    "(`binlog_expire_logs_seconds`), or the datasets of this server have to be loaded again."
)


class Untappable(RuntimeError):
    """The server cannot be tapped as it is; the message says why, and what to do."""


@dataclass(frozen=True)
class Beginning:
    """`stops`: by topic, why its capture cannot go on in its load."""

    position: TapPosition
    stops: Mapping[str, str] = field(default_factory=dict)
    warning: str = ""


def table_name(server: str, planned: PlannedCapture) -> str:
    """`host:port/database.table`; of a cluster its topic is behind it."""
    spec = planned.spec
    return f"{server}/{spec.database}.{spec.table}" if spec.database else f"{server}/{spec.table}"


def moved_captures(server: str, plan: Sequence[PlannedCapture]) -> dict[str, str]:
    """By topic, why: what was captured in this load is another table."""
    return {
        planned.spec.topic: f"The dataset was captured from {planned.capture.captured_table}, and its feed reads {table_name(server, planned)} now. {LOAD_AGAIN}"
        for planned in plan
        if planned.is_live and planned.capture.captured_table != table_name(server, planned)
    }


def otherwise_hidden(plan: Sequence[PlannedCapture]) -> dict[str, str]:
    """By topic, why: rows of this load have, or have not, what its columns are to show now."""
    changes = {each.spec.topic: changed_columns(each.capture, each.spec.hidden) for each in plan if each.is_live}
    return {
        topic: f"Since the dataset was loaded other columns are left out, hashed or masked: {changed}. Nothing more is captured until all rows have them so. "
        f"{LOAD_AGAIN}"
        for topic, changed in changes.items()
        if changed
    }


def beginning(server: str, stored: TapState | None, files: BinlogFiles, live: Sequence[str]) -> Beginning:
    """`stored`: of the changelog; None: nobody has tapped this server. `live`: topics whose changes must not be lost. Raises Untappable."""
    newest = TapPosition(files.newest)
    if not live:
        return Beginning(newest)  # nobody needs what came before
    if stored is None:
        why = f"The changelog has no place of the tap of {server}: it is another one, or was emptied. {LOAD_AGAIN}"
        return Beginning(newest, dict.fromkeys(live, why))
    gtid = stored.position.gtid
    match files.place_of(gtid):
        case Place.UNKNOWN:
            raise Untappable(
                f"The server {server} does not know the transaction {gtid}, which was captured last; its newest is {files.newest or 'none'}. If it is a "
                "replica that is behind, wait. If it was set up anew or restored, load all of its datasets again, with `replace`."
            )
        case Place.PURGED:
            why = f"The server {server} has removed changes from its binlog before they were captured, after {gtid or 'its beginning'}. {LOAD_AGAIN}"
            return Beginning(newest, dict.fromkeys(live, why))
        case Place.NEXT_TO_GO:
            return Beginning(stored.position, warning=PURGE_WARNING)
    return Beginning(stored.position)
