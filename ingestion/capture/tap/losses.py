"""What becomes of a capture whose table has lost rows that the binlog does not name."""

from __future__ import annotations

from ingestion.capture.binlog.removals import ALL_TABLES, Loss, Removal
from ingestion.capture.tap.captured_table import CaptureSpec
from ingestion.capture.tap.known_tables import RELOAD


def is_of(removal: Removal, spec: CaptureSpec) -> bool:
    return spec.database == removal.database and removal.table in (ALL_TABLES, spec.table)


def is_followed(spec: CaptureSpec, removal: Removal) -> bool:
    """The rows of the lake go too. Those of a table of cells have reference keys of their own, which say nothing of when."""
    follows = {Loss.EMPTIED: spec.follows_truncate, Loss.DROPPED: spec.follows_drop}
    return spec.cells is None and follows.get(removal.loss, False)


def reason_of_loss(removal: Removal, table: str) -> str:
    match removal.loss:
        case Loss.EMPTIED:
            what = f"{table} was truncated: its rows are gone, and those in the lake are still there."
        case Loss.PARTITION_REMOVED:
            what = f"{table} has lost rows with a partition that was removed or exchanged; those in the lake are still there."
        case Loss.DUPLICATES_DROPPED:
            what = f"{table} was changed by ALTER IGNORE TABLE, which drops rows that a key does not allow; those in the lake are still there."
        case Loss.FILES_REPLACED:
            what = f"The files of {table} were taken away or replaced by others: what rows it has now is not in the binlog."
        case Loss.RENAMED:
            new_name = ".".join(removal.becomes or ())
            what = f"{table} was renamed to `{new_name}`, and what has its name now is another table."
        case Loss.REPLACED:
            what = f"Another table was given the name {table}: the rows that it had before are not in the binlog."
        case Loss.DROPPED:
            what = f"{table} was dropped; its rows in the lake are still there."
        case Loss.WRITTEN_BY_STATEMENT:
            what = (
                f"A session has changed {table} with another `binlog_format` than ROW: which rows is not in the binlog."
            )
    return f"{what} {RELOAD}"
