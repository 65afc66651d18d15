"""One round: four writers write, tables are altered, something is killed, they pause, the instance comes to rest, everything is checked."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from random import Random

from django.db import DatabaseError, connection
from django.db.models import Sum

from ingestion.captures.changelog import configured_changelog
from ingestion.changelog import Outgoing
from ingestion.models import Capture, Commit
from tests.soak.capture.accounting.checks import CHECKS, each_change_is_in_the_log_once, is_all_captured, what_is_left
from tests.soak.capture.cells import CELLS
from tests.soak.capture.faults import UP_WITHIN_S, Fault, is_of_loads, load_anew, possible_faults
from tests.soak.capture.misfits import MISFIT_TABLE, is_loaded, mend_at_source, write_misfits
from tests.soak.capture.onboarding import onboard_all
from tests.soak.capture.other_key import replace_key, restore_key
from tests.soak.capture.stand import CaptureStand
from tests.soak.capture.tables import TABLES, TABLES_WITH_HISTORY
from tests.soak.capture.topic import TOPIC
from tests.soak.report import Round
from tests.soak.stand.waiting import NotInTime

WORK_S = (2.0, 7.0)
"""How long everybody has worked when something is killed."""
REST_WITHIN_S = 150.0
_REPEATED = 300
Event = tuple[str, Callable[[], str]]
"""What else happens meanwhile; it says what it has done."""


@dataclass(frozen=True)
class Wanted:
    """`faults`, `events`: patterns of their names."""

    rounds: int
    faults: str = ""
    events: str = ""


def play(standing: CaptureStand, wanted: Wanted, random: Random) -> Iterator[Round]:
    standing.create(random)
    standing.instance.start()
    try:
        standing.wait_until(standing.instance.is_up, "the instance is up", within_s=UP_WITHIN_S)
        onboard_all(standing)
        for number in range(1, wanted.rounds + 1):
            yield _round(standing, number, wanted, random)
    finally:
        standing.instance.stop()


def _round(standing: CaptureStand, number: int, wanted: Wanted, random: Random) -> Round:
    before = standing.source.transactions, _commits(), _rejected()
    standing.alterations.loading = {table.name for table in TABLES} if number == 1 else set()
    faults = _faults(possible_faults(standing, wanted.faults), number, random)
    events = _events(standing, wanted.events, random)
    # Otherwise each later change of such a row would be put aside, in all rounds that follow.
    mend_at_source(standing.source, all_texts=True)
    standing.resume()
    happened = _make_happen(standing, faults, events, random)
    time.sleep(random.uniform(*WORK_S))
    standing.pause()
    findings = [*restore_key(standing)]
    mend_at_source(standing.source, all_texts=False)
    changes = standing.accounts.read_binlog(standing.source.newest())
    standing.alterations.note_written(changes)
    began, rest_s = time.monotonic(), None
    left: list[str] = []
    try:
        standing.wait_until(partial(_is_at_rest, standing, left), "at rest", within_s=REST_WITHIN_S)
        rest_s = time.monotonic() - began
        findings += [problem for check in CHECKS for problem in check(standing)]
    except NotInTime as late:
        findings.append(f"{late}; left: {'; '.join(left)}")
        findings += each_change_is_in_the_log_once(standing) if is_all_captured(standing) else ()
    findings += standing.instance.take_findings()
    counts = {
        "transactions": standing.source.transactions - before[0],
        "changes": sum(each.total() for each in changes.values()),
        "commits": _commits() - before[1],
        "rejected": _rejected() - before[2],
    }
    return Round(number, tuple(name for name, _ in faults), happened, rest_s, counts, tuple(findings))


def _faults(possible: list[Fault], number: int, random: Random) -> list[Fault]:
    """One or two. The first round begins with one in the first load, if there may be any."""
    of_loads = [fault for fault in possible if is_of_loads(fault)]
    first = [random.choice(of_loads)] if number == 1 and of_loads else []
    others = [fault for fault in possible if fault not in first]
    return [*first, *random.sample(others, min(len(others), random.choice((1, 2)) - len(first)))]


def _events(standing: CaptureStand, pattern: str, random: Random) -> list[Event]:
    altering: list[Event] = [(alter.__name__, alter) for alter in standing.alterations.all]
    others: list[Event] = [("load", partial(_load, standing, random)), ("repeat", partial(_repeat, standing, random))]
    others.append(("misfits", partial(_misfits, standing, random)))
    others.append(("key", partial(replace_key, standing)))
    possible = [event for event in (*altering, *others) if re.search(pattern, event[0])]
    return random.sample(possible, min(len(possible), random.choice((1, 2, 3))))


def _make_happen(standing: CaptureStand, faults: list[Fault], events: list[Event], random: Random) -> tuple[str, ...]:
    """What the events say. They come before, between or after the faults."""
    places = [random.randint(0, len(faults)) for _ in events]
    happened = []
    for place in range(len(faults) + 1):
        for event_place, (_, happen) in zip(places, events, strict=True):
            if event_place == place:
                happened.append(happen())
        if place < len(faults):
            _, strike = faults[place]
            time.sleep(random.uniform(*WORK_S) * standing.slowness)
            strike(standing)
    return tuple(filter(None, happened))


def _load(standing: CaptureStand, random: Random) -> str:
    names = [table.name for table in TABLES if table.name not in TABLES_WITH_HISTORY]
    return load_anew(standing, random.choice([*names, CELLS, *((TOPIC,) if standing.topic else ())]))


def _misfits(standing: CaptureStand, random: Random) -> str:
    standing.wait_until(partial(is_loaded, MISFIT_TABLE.name), f"{MISFIT_TABLE.name} is loaded", within_s=UP_WITHIN_S)
    return write_misfits(standing.source, random)


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
    standing.accounts.repeated[topic].update(message.value or b"" for message in outgoing)
    return f"{len(outgoing)} messages of {topic} come again" if outgoing else ""


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


def _rejected() -> int:
    return Commit.objects.aggregate(rows=Sum("errors"))["rows"] or 0
