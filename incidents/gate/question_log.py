"""The log of questions to the gate, for the query-level score: written at once by jobs, and behind the answer by the web.

A web process hands its questions to a queue of a bounded length, and a thread writes them in batches, a moment later. When the
process is asked to stop, what is queued is written before it ends. A process that is killed loses what it has not written
yet: at most FLUSH_SECONDS of questions, and no answer was ever wrong for it. Where the database does not take them for so long that
the queue is full, the newest are dropped, and counted in `GateCounter` (`/metrics`).
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

from incidents.models import GateCounter, GateQuestion, RepeatedQuestion
from lakehub.catalog.models import DatasetCopy

FLUSH_SECONDS = 0.25
MAX_QUEUED = 20_000
BATCH_SIZE = 1_000
QUESTIONS_DROPPED, QUESTIONS_REFUSED = "questions_dropped", "questions_refused"
"""What `GateCounter` counts: not kept; and not answered, because they came too often."""
_GENERATED_ID_PREFIX = "~"
"""Begins the name of a request to which nobody gave one."""
_QUESTION_KEY = ("consumer", "request_id", "copy_id", "start", "end")
"""What is one question; each is looked for by all of them, since a job may ask under one name for years."""

_log = logging.getLogger(__name__)


def new_request_id() -> str:
    """For a question whose asker named none: it is counted by itself."""
    return f"{_GENERATED_ID_PREFIX}{getrandbits(128):032x}"


def save_questions(questions: Iterable[GateQuestion]) -> None:
    """Writes them now. Of one request the first answer stays, and of those that follow the time."""
    rows = list(questions)
    GateQuestion.objects.bulk_create(rows, ignore_conflicts=True)
    named = [row for row in rows if not row.request_id.startswith(_GENERATED_ID_PREFIX)]
    if named:
        _save_repeats(named)


def _save_repeats(questions: Sequence[GateQuestion]) -> None:
    """The times of those that are kept already, with another time."""
    among = {f"{name}__in": {getattr(question, name) for question in questions} for name in _QUESTION_KEY}
    of_these = GateQuestion.objects.filter(**among)
    saved_questions = {tuple(key): (pk, at) for pk, at, *key in of_these.values_list("pk", "at", *_QUESTION_KEY)}
    again = []
    for row in questions:
        pk, at = saved_questions.get(tuple(getattr(row, name) for name in _QUESTION_KEY), (None, row.at))
        if row.at != at:
            again.append(RepeatedQuestion(question_id=pk, at=row.at))
    if again:
        RepeatedQuestion.objects.bulk_create(again, ignore_conflicts=True)


def increment_counter(name: str, by: int) -> None:
    """Adds to a number that all processes share."""
    row, is_new = GateCounter.objects.get_or_create(name=name, defaults={"count": by})
    if not is_new:
        GateCounter.objects.filter(pk=row.pk).update(count=F("count") + by)


def counter_value(name: str) -> int:
    return GateCounter.objects.filter(name=name).values_list("count", flat=True).first() or 0


class QuestionLog:
    """Takes questions without waiting, and has `write_batch` write them from a thread of its own. One for each process.

    Before `begin` and after `stop` it writes what it is given at once.
    """

    def __init__(
        self,
        write: Callable[[Sequence[GateQuestion], Mapping[str, int]], None],
        *,
        most: int = MAX_QUEUED,
        every_s: float = FLUSH_SECONDS,
    ) -> None:
        self._write, self._most, self._every_s = write, most, every_s
        self._began = False
        self._reset()

    def _reset(self) -> None:
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
            self._reset()  # forked: what the parent was given, the parent writes
        with self._lock:
            for question in questions:
                if len(self._queue) < self._most:
                    self._queue.append(question)
                else:
                    self._counts[QUESTIONS_DROPPED] += 1
        self._ensure_writer()

    def tally(self, name: str, by: int) -> None:
        """Adds to a number that all processes share, behind the answer too."""
        if self._pid != os.getpid():
            self._reset()
        with self._lock:
            self._counts[name] += by
        self._ensure_writer()

    def _ensure_writer(self) -> None:
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
                    batch = [self._queue.popleft() for _ in range(min(BATCH_SIZE, len(self._queue)))]
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


def write_batch(questions: Sequence[GateQuestion], counts: Mapping[str, int]) -> None:
    """One insert. A question about a copy that is gone meanwhile does not take the others with it."""
    if threading.current_thread() is not threading.main_thread():
        close_old_connections()
    try:
        _insert_batch(questions, counts)
    except IntegrityError:
        there = set(
            DatasetCopy.with_removed.filter(pk__in={question.copy_id for question in questions}).values_list(
                "pk", flat=True
            )
        )
        _insert_batch([question for question in questions if question.copy_id in there], counts)
    except DataError:
        _insert_batch([], {**counts, QUESTIONS_DROPPED: counts.get(QUESTIONS_DROPPED, 0) + _save_one_by_one(questions)})


def _save_one_by_one(questions: Sequence[GateQuestion]) -> int:
    """What the database does not take keeps nothing behind it waiting. How many that were."""
    refused = 0
    for question in questions:
        try:
            with transaction.atomic():
                save_questions([question])
        except (DataError, IntegrityError):
            refused += 1
            _log.exception("A question to the gate by %.80r cannot be kept.", question.consumer)
    return refused


def _insert_batch(questions: Sequence[GateQuestion], counts: Mapping[str, int]) -> None:
    with transaction.atomic():
        save_questions(questions)
        for name, by in sorted(counts.items()):
            increment_counter(name, by)


QUESTION_LOG = QuestionLog(write_batch)
"""Of this process; lakehub.wsgi begins it."""
