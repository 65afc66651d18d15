"""What all jobs and looks at the connections of a server may use of it together, over all processes: places, and rows per second.

Connections that name one server share what is taken and paid for there, and each goes by its own limit; one without a limit is not asked, and not counted.
A place is a lease in the database. Who finds none has a place in the queue, asks again, and is the next when one is free. Rows are paid for
after they were read: each piece moves on the time until when the source is paid for, and whoever has read it waits until then.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from django.db import Error as DatabaseProblem
from django.db import transaction
from django.db.models import Q, QuerySet, Subquery, Sum
from django.db.models.functions import Now

from ingestion.captures.servers import server_of
from ingestion.models import JobKind, JobRun, SourcePlace, SourceQuota
from ingestion.runs.leases import LEASE_DURATION, lease_end
from ingestion.runs.requests.source_checks import is_landed_feed
from ingestion.runs.source_use import paused_runs
from ingestion.spark.contract.job_kinds import READING_KINDS
from lakehub.catalog.datasets.feed_options import effective_options
from lakehub.catalog.models import Connection, DatasetCopy
from lakehub.source_databases.urls import UnusableUrl

logger = logging.getLogger(__name__)

RETRY_AFTER = timedelta(seconds=5)
SILENCE = timedelta(minutes=1)
"""Who waits and has not asked for so long holds up nobody behind it."""
FORGOTTEN_AFTER = timedelta(minutes=10)
"""Who has not asked for so long begins to wait anew."""
MAX_DEBT = timedelta(minutes=1)
"""So long the others wait at most for what one has read between two payments: a look may read a source whole, a job a piece at a limit of before."""
CATCH_UP = timedelta(seconds=1)
"""What was not read meanwhile may be caught up for so long."""
_MAX_NAMED = 5
_LONGEST_SERVER = 1000
_MORE_PLACES = "Raise `max_connections` of the connection, or load less at once."
_MORE_ROWS = "Raise `rows_per_s` of the connection, or load less at once."


@dataclass(frozen=True)
class Crowded:
    """Others use the source up, or the index. `waits`: since it asked for the first time."""

    why: str
    waits: timedelta = timedelta()
    retry_after: timedelta = RETRY_AFTER
    remedy: str = _MORE_PLACES

    def error_after(self, limit: timedelta) -> str | None:
        """In words, where it has waited for longer."""
        if self.waits < limit:
            return None
        waited = timedelta(seconds=int(self.waits.total_seconds()))
        return f"It {self.why}, and has waited for {waited}. {self.remedy}"


def connection_of(run: JobRun) -> Connection | None:
    """What its jobs and looks read; None where they read no source."""
    feed = run.copy.dataset.feed_or_none
    reads = run.kind in READING_KINDS or run.kind == JobKind.FOLLOW
    return feed.connection if feed is not None and reads else None


def server_read_by(connection: Connection) -> str:
    """`host:port` as the URL names it, of a Kafka all of them; what is on no server is its connection's alone."""
    try:
        server = server_of(connection.url)
    except UnusableUrl:
        server = ""
    has_host = server != "" and not server.startswith(":")
    return server[:_LONGEST_SERVER] if has_host else f"connection {connection.pk}"


def take_place(run: JobRun, worker: str) -> Crowded | None:
    """None: it has one, or its connection has no limit. It has to be renewed and released."""
    connection = connection_of(run)
    if connection is None or connection.max_connections is None:
        return None
    with transaction.atomic():
        # Whoever takes a place of this server waits here. What a person has changed since the run was read counts too.
        server = server_read_by(connection)
        _lock(server)
        locked = Connection.objects.get(pk=connection.pk)
        own = _own_place(run, locked, server, worker)
        others = SourcePlace.objects.filter(server=server).exclude(pk=own.pk)
        taken = others.filter(leased_until__gte=Now())
        is_ahead = Q(asked_at__lt=own.asked_at) | Q(asked_at=own.asked_at, pk__lt=own.pk)
        ahead = others.filter(is_ahead, leased_until=None, seen_at__gte=Now() - SILENCE)
        most, wanted = locked.max_connections, _readers_wanted(run)
        free = wanted if most is None else most - _connections_of(taken) - ahead.count()
        if free > 0:
            own_places = SourcePlace.objects.filter(pk=own.pk)
            own_places.update(leased_until=lease_end(LEASE_DURATION), connections=min(wanted, free))
            return None
        return _crowded(locked, own, list(taken.select_related("run__copy__dataset", "run__copy__data_center")))


def readers_of(run: JobRun) -> int:
    """How many connections its job may read at once, now that it has its place."""
    place = SourcePlace.objects.filter(run=run, leased_until__isnull=False).first()
    return _readers_wanted(run) if place is None else place.connections


def _readers_wanted(run: JobRun) -> int:
    feed = run.copy.dataset.feed_or_none
    reads_chunks = run.kind == JobKind.BOOTSTRAP and is_landed_feed(feed) and not run.params.get("from_chunks")
    if feed is None or not reads_chunks:
        return 1
    return int(effective_options(feed.options)["readers"])


def _connections_of(places: QuerySet[SourcePlace]) -> int:
    return int(places.aggregate(connections=Sum("connections", default=0))["connections"])


def needs_place(run: JobRun) -> bool:
    connection = connection_of(run)
    return connection is not None and connection.max_connections is not None


def take_turn(run: JobRun, worker: str, *, waits: timedelta) -> Crowded | None:
    """For a look, which cannot wait while it reads: None where it may begin, and has its place. Without limits no query.

    `waits`: since it asked for this turn for the first time. No row keeps that for those who wait until the rows of others are paid for.
    """
    connection = connection_of(run)
    if connection is not None and connection.rows_per_s is not None and (wait := _time_until_paid(connection)):
        why = f"waits for the connection `{connection.name}`: others use up its {connection.rows_per_s:,} rows a second"
        return Crowded(why, waits, wait, _MORE_ROWS)
    return take_place(run, worker)


def end_turn(run: JobRun, worker: str, rows: int) -> None:
    """The look has read so many."""
    connection = connection_of(run)
    if connection is not None and connection.rows_per_s is not None and rows:
        pay_for_rows(connection, rows)
    if needs_place(run):
        release_place(run, worker)


@contextmanager
def place_of(run: JobRun, worker: str) -> Iterator[Crowded | None]:
    """None: it has a place as long as the block lasts, or needs none."""
    crowded = take_place(run, worker)
    has_place = crowded is None and needs_place(run)
    try:
        yield crowded
    finally:
        if has_place:
            release_place(run, worker)


def renew_places(worker: str) -> None:
    """All that `worker` has."""
    held = SourcePlace.objects.filter(leased_by=worker, leased_until__isnull=False)
    held.update(leased_until=lease_end(LEASE_DURATION))


def release_place(run: JobRun, worker: str) -> None:
    """Also where there is none, or it waits no more."""
    SourcePlace.objects.filter(run=run, leased_by=worker).delete()


def release_all_places(worker: str) -> None:
    """The process ends."""
    SourcePlace.objects.filter(leased_by=worker).delete()


def pay_for_rows(connection: Connection, rows: int) -> timedelta:
    """`rows` were read there, and count as those of MAX_DEBT at most; how long to wait before more is read. Zero where there is no limit."""
    with transaction.atomic():
        rate = Connection.objects.values_list("rows_per_s", flat=True).get(pk=connection.pk)
        if rate is None:
            return timedelta()
        quotas = _lock(server_read_by(connection))
        owed, now = _owed(quotas, rate)
        owed = max(owed, -CATCH_UP) + min(timedelta(seconds=rows / rate), MAX_DEBT)
        quotas.update(paid_until=now + owed, rows_per_s=rate)
        return max(owed, timedelta())


class IndexRequests(Protocol):
    def requests_per_s(self) -> float:
        """What the job may send to its index cluster now. Asked from any thread, and without the database."""


@dataclass
class RunGuidance:
    """What the job of a run is told, out of this process. A `contract.guidance.Guidance`."""

    copy: DatasetCopy
    connection: Connection | None
    allowance: IndexRequests | None = None
    _paid_rows: int = field(default=0, init=False)
    _reads_on_at: float = field(default=0.0, init=False)

    def is_paused(self) -> bool:
        return paused_runs.is_paused(self.copy)

    def may_read_on(self, rows: int) -> bool:
        """Where the database does not answer the job waits, until its deadline."""
        if rows > self._paid_rows and self.connection is not None:
            try:
                wait = pay_for_rows(self.connection, rows - self._paid_rows)
            except DatabaseProblem:
                logger.warning("What %s has read cannot be written down: it waits", self.copy, exc_info=True)
                return False
            self._paid_rows, self._reads_on_at = rows, time.monotonic() + wait.total_seconds()
        return time.monotonic() >= self._reads_on_at

    def index_requests_per_s(self) -> float | None:
        return None if self.allowance is None else self.allowance.requests_per_s()


def guidance_of(run: JobRun, allowance: IndexRequests | None = None) -> RunGuidance:
    """`allowance`: of an index cluster; None: it sends nothing there."""
    return RunGuidance(run.copy, connection_of(run), allowance)


def _time_until_paid(connection: Connection) -> timedelta:
    """By the limit as it is now. Asks one query."""
    rate = Connection.objects.filter(pk=connection.pk).values("rows_per_s")
    quotas = SourceQuota.objects.filter(server=server_read_by(connection), paid_until__gt=Now())
    quota = quotas.annotate(now=Now(), rate=Subquery(rate)).first()
    if quota is None or quota.rate is None:
        return timedelta()
    return _at_rate(quota.paid_until - quota.now, quota.rows_per_s, quota.rate)


def _lock(server: str) -> QuerySet[SourceQuota]:
    """Until the transaction ends. Nothing is owed there where nobody has read yet."""
    SourceQuota.objects.get_or_create(server=server, defaults={"paid_until": Now() - CATCH_UP, "rows_per_s": 1})
    quotas = SourceQuota.objects.filter(server=server)
    quotas.select_for_update().get()
    return quotas


def _own_place(run: JobRun, connection: Connection, server: str, worker: str) -> SourcePlace:
    elsewhere = ~Q(connection=connection) | ~Q(server=server)
    SourcePlace.objects.filter(Q(seen_at__lt=Now() - FORGOTTEN_AFTER) | elsewhere, run=run).delete()
    asked = {"connection": connection, "server": server, "leased_by": worker, "asked_at": Now(), "seen_at": Now()}
    SourcePlace.objects.get_or_create(run=run, defaults=asked)
    SourcePlace.objects.filter(run=run).update(seen_at=Now(), leased_by=worker, leased_until=None)
    return SourcePlace.objects.get(run=run)


def _crowded(connection: Connection, own: SourcePlace, taken: list[SourcePlace]) -> Crowded:
    names = [f"{place.run.kind} run {place.run_id} on {place.run.copy}" for place in taken]
    connections = sum(place.connections for place in taken)
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    why = (
        f"waits for the connection `{connection.name}`: {connections} of {connection.max_connections} places are taken"
        f"{': ' if names else ''}{', '.join(names[:_MAX_NAMED])}{more}"
    )
    return Crowded(why, own.seen_at - own.asked_at)


def _owed(quotas: QuerySet[SourceQuota], rate: int) -> tuple[timedelta, datetime]:
    """How long what was read is still to be paid for; negative: for so long nothing was read. And the database's time."""
    quota = quotas.annotate(now=Now()).get()
    return _at_rate(quota.paid_until - quota.now, quota.rows_per_s, rate), quota.now


def _at_rate(owed: timedelta, rows_per_s: int, rate: int) -> timedelta:
    """The rows are what is owed: at another rate they take another time."""
    return owed * rows_per_s / rate if owed > timedelta() else owed
