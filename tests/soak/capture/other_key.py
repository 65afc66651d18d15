"""A table whose primary key is replaced: its capture stops alone and says so, until the operator has given it its key again and loaded it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ingestion.models import Capture, Finding
from tests.soak.capture.accounting.binlog import Gap, sequence_of
from tests.soak.capture.alterations import last_transaction
from tests.soak.capture.faults import UP_WITHIN_S, load_anew
from tests.soak.capture.stand import CaptureStand
from tests.soak.capture.tables import EMPTIED_TABLE
from tests.soak.stand.waiting import NotInTime

_TABLE = EMPTIED_TABLE
_OTHER_KEY = "id, day"


def replace_key(standing: CaptureStand) -> str:
    """And a row follows, by which the tap sees it."""
    capture = Capture.objects.filter(feed__dataset__name=_TABLE.name).first()
    if capture is None or not capture.is_captured or _TABLE.name in standing.accounts.gaps:
        return ""
    with standing.source.session() as cursor:
        cursor.execute(f"ALTER TABLE {_TABLE.name} DROP PRIMARY KEY, ADD PRIMARY KEY ({_OTHER_KEY})")
        standing.accounts.gaps[_TABLE.name] = Gap(sequence_of(capture.captured_from), last_transaction(cursor))
        cursor.execute(f"REPLACE INTO {_TABLE.name} (id, day) VALUES (1, '2026-11-26')")
    return f"{_TABLE.name} gets the key ({_OTHER_KEY})"


def restore_key(standing: CaptureStand) -> Iterator[str]:
    """When nobody writes: what was wrong until then."""
    gap = standing.accounts.gaps.get(_TABLE.name)
    try:
        if gap is not None:
            yield from _restore(standing, gap)
    except NotInTime as late:
        yield str(late)


def _restore(standing: CaptureStand, gap: Gap) -> Iterator[str]:
    standing.wait_until(_is_told, f"the capture of {_TABLE.name} has stopped", within_s=UP_WITHIN_S)
    for capture in Capture.objects.select_related("feed__dataset"):
        # Its own may go on by now: a fault in a load has it loaded anew.
        if capture.is_stopped and capture.feed.dataset.name != _TABLE.name:
            yield f"{capture} is stopped, after {_TABLE.name} got another key; {capture.stopped_why}"
    name = _TABLE.name
    standing.source.execute(
        f"DELETE newer FROM {name} newer JOIN {name} older ON newer.id = older.id AND newer.day > older.day",
        f"ALTER TABLE {name} DROP PRIMARY KEY, ADD PRIMARY KEY (id)",
    )
    gap.is_open = False
    standing.wait_until(partial(_load, standing), f"{name} can be loaded", within_s=UP_WITHIN_S)


def _is_told() -> bool:
    """With what has happened."""
    open_ = Finding.objects.filter(kind="capture_stopped", cleared_at=None, copy__dataset__name=_TABLE.name)
    return any("primary key" in str(finding.detail) for finding in open_)


def _load(standing: CaptureStand) -> bool:
    return bool(load_anew(standing, _TABLE.name))
