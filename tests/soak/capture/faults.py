"""What is killed, and when."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial

from ingestion.capture.tap.tap import MAX_PENDING
from ingestion.captures.changelog import configured_changelog
from ingestion.models import Capture
from ingestion.runs.job_runs import request_run
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.errors import Conflict, Refused
from tests.soak.capture.onboarding import ACTOR
from tests.soak.capture.stand import CaptureStand
from tests.soak.capture.tables import TABLE_OF_LARGE

UP_WITHIN_S = 90.0
CHUNKS_WITHIN_S = 180.0
"""Loads of other tables may come first."""
PROCESSES = ("tap", "follow", "spark", "java")
_OF_LOADS = ("tap", "spark", "java")
_IN_A_LOAD = "in a load"
Fault = tuple[str, Callable[[CaptureStand], None]]


def possible_faults(standing: CaptureStand, pattern: str) -> list[Fault]:
    """Those whose names match."""
    faults: list[Fault] = [(f"kill -9 {name}", partial(_kill_process, name)) for name in PROCESSES]
    faults += [(f"kill -9 {name} {_IN_A_LOAD}", partial(_kill_in_a_load, name)) for name in _OF_LOADS]
    faults += [(f"kill -9 {name}", partial(_kill_server, name)) for name in standing.servers]
    faults.append(("kill -9 tap in a transaction", _kill_tap_in_a_transaction))
    return [fault for fault in faults if re.search(pattern, fault[0])]


def is_of_loads(fault: Fault) -> bool:
    return fault[0].endswith(_IN_A_LOAD)


def load_anew(standing: CaptureStand, table: str) -> str:
    """What was done; empty: it is loaded already, or cannot be now."""
    if (gap := standing.accounts.gaps.get(table)) is not None and gap.is_open:
        return ""
    copy = DatasetCopy.objects.select_related("dataset__feed__connection", "data_center").get(dataset__name=table)
    try:
        request_run(copy, "bootstrap", {"replace": True}, asked_by=ACTOR, now=datetime.now(UTC))
    except (Conflict, Refused):
        return ""
    standing.alterations.note_load(table)
    return f"{table} is loaded anew"


def _kill_process(name: str, standing: CaptureStand) -> None:
    standing.wait_until(lambda: bool(standing.instance.process(name)), f"{name} to kill", within_s=UP_WITHIN_S)
    with suppress(ProcessLookupError):
        os.kill(standing.instance.process(name), signal.SIGKILL)


def _kill_in_a_load(name: str, standing: CaptureStand) -> None:
    """When some of its chunks have landed: of the first load, or of another one."""
    load_anew(standing, TABLE_OF_LARGE.name)
    standing.wait_until(partial(_has_chunks_of_a_load, standing), "chunks have landed", within_s=CHUNKS_WITHIN_S)
    _kill_process(name, standing)


def _has_chunks_of_a_load(standing: CaptureStand) -> bool:
    """That has not ended."""
    chunks = standing.lake.glob(f".lakehub/raw/{TABLE_OF_LARGE.name}/*/00000001.avro")
    return any(not (chunk.parent / "end.json").exists() for chunk in chunks)


def _kill_tap_in_a_transaction(standing: CaptureStand) -> None:
    """One of so many rows that the tap commits it in parts: when the first of them is in the changelog."""
    capture = Capture.objects.get(feed__dataset__name=TABLE_OF_LARGE.name)
    standing.wait_until(partial(_is_captured, capture), "the table is captured", within_s=UP_WITHIN_S)
    before = _end_of(capture.topic)
    standing.source.change_many_rows()
    standing.wait_until(lambda: _end_of(capture.topic) >= before + MAX_PENDING, "a part is there", within_s=UP_WITHIN_S)
    _kill_process("tap", standing)


def _is_captured(capture: Capture) -> bool:
    capture.refresh_from_db()
    return capture.is_captured


def _end_of(topic: str) -> int:
    return sum(each.next for each in configured_changelog().reader().bounds(topic).values())


def _kill_server(name: str, standing: CaptureStand) -> None:
    standing.servers[name].kill()
    time.sleep(1.0)
    standing.servers[name].start()
