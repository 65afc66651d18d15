"""One round: four writers write, something is killed, they pause, the instance comes to rest, everything is checked."""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from random import Random

from django.db import DatabaseError, connection

from ingestion.capture.tap.tap import MAX_PENDING
from ingestion.captures.changelog import configured_changelog
from ingestion.changelog import Outgoing
from ingestion.models import Capture, Commit
from ingestion.runs.job_runs import request_run
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.errors import Conflict, Refused
from tests.soak.capture.checks import CHECKS, what_is_left
from tests.soak.capture.onboarding import ACTOR, onboard_all
from tests.soak.capture.stand import CaptureStand
from tests.soak.capture.tables import TABLE_OF_LARGE, TABLES
from tests.soak.report import Round
from tests.soak.stand.waiting import NotInTime

WORK_S = (2.0, 7.0)
"""How long everybody has worked when something is killed."""
REST_WITHIN_S, UP_WITHIN_S = 150.0, 90.0
PROCESSES = ("tap", "follow", "spark", "java")
_REPEATED = 300
Fault = tuple[str, Callable[[CaptureStand], None]]


def play(standing: CaptureStand, *, rounds: int, random: Random) -> Iterator[Round]:
    standing.source.create_tables()
    standing.instance.start()
    try:
        standing.wait_until(standing.instance.is_up, "the instance is up", within_s=UP_WITHIN_S)
        onboard_all(standing)
        for number in range(1, rounds + 1):
            yield _round(standing, number, random)
    finally:
        standing.instance.stop()


def _round(standing: CaptureStand, number: int, random: Random) -> Round:
    before = standing.source.transactions, _commits()
    standing.source.resume()
    faults = random.sample(_faults(standing), random.choice((1, 2)))
    events = [event for event in (_event(standing, random),) if event]
    for _, strike in faults:
        time.sleep(random.uniform(*WORK_S) * standing.slowness)
        strike(standing)
    time.sleep(random.uniform(*WORK_S))
    standing.source.pause()
    began, rest_s, findings = time.monotonic(), None, []
    left: list[str] = []
    try:
        standing.wait_until(partial(_is_at_rest, standing, left), "at rest", within_s=REST_WITHIN_S)
        rest_s = time.monotonic() - began
        findings += [problem for check in CHECKS for problem in check(standing)]
    except NotInTime as late:
        findings.append(f"{late}; left: {'; '.join(left)}")
    findings += standing.instance.take_findings()
    counts = {"transactions": standing.source.transactions - before[0], "commits": _commits() - before[1]}
    return Round(number, tuple(name for name, _ in faults), tuple(events), rest_s, counts, tuple(findings))


def _faults(standing: CaptureStand) -> Sequence[Fault]:
    of_instance = [(f"kill -9 {name}", partial(_kill_process, name)) for name in PROCESSES]
    of_servers = [(f"kill -9 {name}", partial(_kill_server, name)) for name in standing.servers]
    return [*of_instance, *of_servers, ("kill -9 tap in a transaction", _kill_tap_in_a_transaction)]


def _kill_process(name: str, standing: CaptureStand) -> None:
    standing.wait_until(lambda: bool(standing.instance.process(name)), f"{name} to kill", within_s=UP_WITHIN_S)
    with suppress(ProcessLookupError):
        os.kill(standing.instance.process(name), signal.SIGKILL)


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


def _event(standing: CaptureStand, random: Random) -> str:
    """What else happens meanwhile: a dataset is loaded anew, a table gets a column, or messages come again."""
    match random.randrange(4):
        case 0:
            return _reload(random)
        case 1:
            return standing.source.alter()
        case 2:
            return _repeat(standing, random)
    return ""


def _repeat(standing: CaptureStand, random: Random) -> str:
    """The newest messages of a topic come once more, in any order."""
    # In the first seconds nothing is captured yet.
    topics, log = sorted(Capture.objects.values_list("topic", flat=True)), configured_changelog()
    if not topics:
        return ""
    topic = random.choice(topics)
    newest = deque(log.reader().read(topic, {}), maxlen=_REPEATED)
    outgoing = [Outgoing(topic, message.key, message.value) for message in newest]
    random.shuffle(outgoing)
    log.writer("soak").commit(outgoing, {})
    standing.repeated[topic] += len(outgoing)
    return f"{len(outgoing)} messages of {topic} come again" if outgoing else ""


def _reload(random: Random) -> str:
    name = random.choice(TABLES).name
    copy = DatasetCopy.objects.select_related("dataset__feed__connection", "data_center").get(dataset__name=name)
    try:
        request_run(copy, "bootstrap", {"replace": True}, asked_by=ACTOR, now=datetime.now(UTC))
    except (Conflict, Refused):
        return ""
    return f"{name} is loaded anew"


def _is_at_rest(standing: CaptureStand, left: list[str]) -> bool:
    try:
        left[:] = what_is_left(standing)
    except DatabaseError as problem:
        left[:] = [f"the database does not answer: {problem}"]
    finally:
        connection.close()
    return not left


def _commits() -> int:
    return Commit.objects.count()
