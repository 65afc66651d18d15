"""Trying connections: off the threads that answer people, few at once in the whole instance, and nobody waits longer than LIMIT.

Each person has one at a time, so that others have the places that are left. A trial that takes longer goes on in its own thread until its time-outs end it, and keeps its place as long: so hosts that never
answer hold no more than these places, and no thread of the web for longer than LIMIT.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from datetime import timedelta
from hashlib import sha256
from threading import Lock, Thread
from typing import TypeVar, cast
from uuid import uuid4

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from lakehub.catalog.metadata import MetadataUnavailable
from lakehub.catalog.models import ConnectionTrial
from lakehub.kernel.errors import Busy

LIMIT = timedelta(seconds=20)
LEASE = timedelta(seconds=100)
"""Longer than any trial of a database takes; whoever dies at one keeps its place so long."""
RETRY_AFTER_S = 20
_TRY_AGAIN = f"Try again in {RETRY_AFTER_S} seconds"
_MARK_LENGTH = 16
_RANDOM_LENGTH = 22
"""Hexadecimal digits of a token, which are 88 bits."""
T = TypeVar("T")

_running = 0
_running_lock = Lock()


def run_trial(work: Callable[[], T], *, person: str = "", note: Callable[[], None] = lambda: None) -> T:
    """What `work` returns or raises; it runs in another thread, so it asks nothing of Lakehub's database.

    `person`: the user name of whoever waits, empty for the operator's commands; `note` is called once there is a place, before `work`.
    Raises Busy where as many trials are under way as may be, and MetadataUnavailable where it takes longer than LIMIT.
    """
    token = _take_place(person)
    future: Future[T] = Future()
    try:
        _start(work, future, note)
    except BaseException:
        _give_back(token)
        raise
    try:
        result = future.result(timeout=LIMIT.total_seconds())
    except TimeoutError:
        if future.done():  # the work itself raised it
            _give_back(token)
        raise MetadataUnavailable(
            f"The trial timed out: there was no answer within {LIMIT.total_seconds():g} seconds. Check the host and the port, "
            "that the server is up, and that no firewall is between."
        ) from None
    except Exception:
        _give_back(token)
        raise
    _give_back(token)
    return result


def running() -> int:
    """How many trials are under way in this process, also those that nobody waits for any more."""
    return _running


def _start(work: Callable[[], T], future: Future[T], note: Callable[[], None]) -> None:
    """Raises Busy: threads of trials that nobody waits for any more are counted in this process as well."""
    global _running
    with _running_lock:
        if _running >= settings.LAKEHUB_CONNECTION_TRIALS:
            raise _busy()
        _running += 1
    try:
        note()
        Thread(target=_run, args=(work, future), name="connection trial", daemon=True).start()
    except BaseException:
        with _running_lock:
            _running -= 1
        raise


def _run(work: Callable[[], T], future: Future[T]) -> None:
    global _running
    result: T | None = None
    problem: BaseException | None = None
    try:
        result = work()
    except BaseException as raised:
        problem = raised
    with _running_lock:
        _running -= 1
    if problem is not None:
        future.set_exception(problem)
    else:
        future.set_result(cast("T", result))


def _take_place(person: str = "") -> str:
    mark, number = _mark_of(person), settings.LAKEHUB_CONNECTION_TRIALS
    token = f"{mark}{uuid4().hex[:_RANDOM_LENGTH]}"
    with transaction.atomic():
        if ConnectionTrial.objects.filter(number__lt=number).count() < number:
            rows = [ConnectionTrial(number=index) for index in range(number)]
            ConnectionTrial.objects.bulk_create(rows, ignore_conflicts=True)
        # All are locked, for a moment: of two requests of a person at the same time the second one sees the first one's place.
        list(ConnectionTrial.objects.select_for_update().order_by("number").values_list("pk"))
        if mark and ConnectionTrial.objects.filter(leased_by__startswith=mark, leased_until__gte=Now()).exists():
            raise Busy(
                f"A connection is being tested for you just now, and each person has one test at a time. {_TRY_AGAIN}.",
                retry_after_s=RETRY_AFTER_S,
            )
        free = ConnectionTrial.objects.filter(Q(leased_until=None) | Q(leased_until__lt=Now()), number__lt=number)
        place = free.order_by("number").values_list("pk", flat=True).first()
        if place is None:
            raise _busy()
        ConnectionTrial.objects.filter(pk=place).update(leased_by=token, leased_until=Now() + LEASE)
    return token


def _mark_of(person: str) -> str:
    """What the tokens of a person begin with."""
    return f"{sha256(person.encode()).hexdigest()[:_MARK_LENGTH]}." if person else ""


def _give_back(token: str) -> None:
    ConnectionTrial.objects.filter(leased_by=token).update(leased_by="", leased_until=None)


def _busy() -> Busy:
    number = settings.LAKEHUB_CONNECTION_TRIALS
    return Busy(
        f"{number} connection{'s are' if number > 1 else ' is'} being tested just now, and no more are at once. "
        f"{_TRY_AGAIN}; the operator allows more with LAKEHUB_CONNECTION_TRIALS.",
        retry_after_s=RETRY_AFTER_S,
    )
