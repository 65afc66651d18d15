"""The log of questions to the gate, for the query-level score: written at once by jobs, and behind the answer by the web.

A web process hands its questions to a queue of a bounded length, and a thread writes them in batches, a moment later. When the
process is asked to stop, what is queued is written before it ends. A process that is killed loses what it has not written
yet: at most FLUSH_S of questions, and no answer was ever wrong for it. Where the database does not take them for so long that
the queue is full, the newest are dropped, and counted in `GateCount` (`/metrics`).
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import getrandbits

from django.db import DataError, IntegrityError, close_old_connections, transaction
from django.db.models import F

from incidents.models import AskedAgain, GateCount, GateQuestion
from lakehub.catalog.models import DatasetCopy

FLUSH_S = 0.25
MOST_QUEUED = 20_000
AT_ONCE = 1_000
DROPPED, REFUSED = "questions_dropped", "questions_refused"
"""What `GateCount` counts: not kept; and not answered, because they came too often."""
_UNNAMED = "~"
"""Begins the name of a request to which nobody gave one."""
_KEY = ("consumer", "request_id", "copy_id", "start", "end")
"""What is one question; each is looked for by all of them, since a job may ask under one name for years."""

_log = logging.getLogger(__name__)


def new_request_id() -> str:
    """For a question whose asker named none: it is counted by itself."""
    return f"{_UNNAMED}{getrandbits(128):032x}"


def keep(questions: Iterable[GateQuestion]) -> None:
    """Writes them now. Of one request the first answer stays, and of those that follow the time."""
    rows = list(questions)
    GateQuestion.objects.bulk_create(rows, ignore_conflicts=True)
    named = [row for row in rows if not row.request_id.startswith(_UNNAMED)]
    if named:
        _keep_later(named)


def _keep_later(questions: Sequence[GateQuestion]) -> None:
    """The times of those that are kept already, with another time."""
    among = {f"{name}__in": {getattr(one, name) for one in questions} for name in _KEY}
    of_these = GateQuestion.objects.filter(**among)
    known = {tuple(key): (pk, at) for pk, at, *key in of_these.values_list("pk", "at", *_KEY)}
    again = []
    for row in questions:
        pk, at = known.get(tuple(getattr(row, name) for name in _KEY), (None, row.at))
        if row.at != at:
            again.append(AskedAgain(question_id=pk, at=row.at))
    if again:
        AskedAgain.objects.bulk_create(again, ignore_conflicts=True)


def count(name: str, by: int) -> None:
    """Adds to a number that all processes share."""
    row, made = GateCount.objects.get_or_create(name=name, defaults={"count": by})
    if not made:
        GateCount.objects.filter(pk=row.pk).update(count=F("count") + by)


def counted(name: str) -> int:
    return GateCount.objects.filter(name=name).values_list("count", flat=True).first() or 0


class Log:
    """Takes questions without waiting, and has `write` write them from a thread of its own. One for each process.

    Before `begin` and after `stop` it writes what it is given at once.
    """

    def __init__(
        self,
        write: Callable[[Sequence[GateQuestion], Mapping[str, int]], None],
        *,
        most: int = MOST_QUEUED,
        every_s: float = FLUSH_S,
    ) -> None:
        self._write, self._most, self._every_s = write, most, every_s
        self._began = False
        self._anew()

    def _anew(self) -> None:
        self._lock, self._writing, self._ended = threading.Lock(), threading.Lock(), threading.Event()
        self._queue: deque[GateQuestion] = deque()
        self._counts: Counter[str] = Counter()
        self._pid = os.getpid()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """From now on behind the answers, until the process ends."""
        self._began = True
        atexit.register(self.stop)

    def put(self, questions: Iterable[GateQuestion]) -> None:
        if self._pid != os.getpid():
            self._anew()  # forked: what the parent was given, the parent writes
        with self._lock:
            for question in questions:
                if len(self._queue) < self._most:
                    self._queue.append(question)
                else:
                    self._counts[DROPPED] += 1
        self._see_to_it()

    def tally(self, name: str, by: int) -> None:
        """Adds to a number that all processes share, behind the answer too."""
        if self._pid != os.getpid():
            self._anew()
        with self._lock:
            self._counts[name] += by
        self._see_to_it()

    def _see_to_it(self) -> None:
        if not self._began:
            self.flush()
        elif self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="gate-log", daemon=True)
                    self._thread.start()

    def flush(self) -> None:
        """Writes what is queued; what cannot be written goes back to its place. Raises what the database says then."""
        with self._writing:
            while True:
                with self._lock:
                    batch = [self._queue.popleft() for _ in range(min(AT_ONCE, len(self._queue)))]
                    counts, self._counts = self._counts, Counter()
                if not batch and not counts:
                    return
                try:
                    self._write(batch, counts)
                except BaseException:
                    with self._lock:
                        self._queue.extendleft(reversed(batch))
                        self._counts += counts
                    raise

    def stop(self) -> None:
        """Writes the rest."""
        self._began = False
        self._ended.set()
        if self._pid == os.getpid():
            self.flush()

    def _run(self) -> None:
        while not self._ended.wait(self._every_s):
            try:
                self.flush()
            except Exception:
                _log.exception("The gate's questions cannot be written; they wait for the next time.")


def write(questions: Sequence[GateQuestion], counts: Mapping[str, int]) -> None:
    """One insert. A question about a copy that is gone meanwhile does not take the others with it."""
    if threading.current_thread() is not threading.main_thread():
        close_old_connections()
    try:
        _insert(questions, counts)
    except IntegrityError:
        there = set(DatasetCopy.objects.filter(pk__in={one.copy_id for one in questions}).values_list("pk", flat=True))
        _insert([one for one in questions if one.copy_id in there], counts)
    except DataError:
        _insert([], {**counts, DROPPED: counts.get(DROPPED, 0) + _one_by_one(questions)})


def _one_by_one(questions: Sequence[GateQuestion]) -> int:
    """What the database does not take keeps nothing behind it waiting. How many that were."""
    refused = 0
    for question in questions:
        try:
            with transaction.atomic():
                keep([question])
        except (DataError, IntegrityError):
            refused += 1
            _log.exception("A question to the gate by %.80r cannot be kept.", question.consumer)
    return refused


def _insert(questions: Sequence[GateQuestion], counts: Mapping[str, int]) -> None:
    with transaction.atomic():
        keep(questions)
        for name, by in sorted(counts.items()):
            count(name, by)


LOG = Log(write)
"""Of this process; lakehub.wsgi begins it."""
