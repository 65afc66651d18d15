"""Sources that keep workers waiting: together they never have more workers than LAKEHUB_SLOW_SOURCES, half of them by default.

Whoever reads a database for longer than SLOW_AFTER needs a slot of the slow sources to go on. Who finds none is interrupted,
what it had claimed is others' again, and the source is known to be slow: from then on nobody reads it without such a slot, until
it has answered quickly once more. So sources that go silent all at once hold the other workers for SLOW_AFTER, and only once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from functools import partial
from uuid import uuid4

from django.db import Error, transaction
from django.db import connection as own_database

from lakehub.catalog.metadata import MetadataUnavailable, StorageUnreachable
from lakehub.catalog.models import Connection, DatasetCopy
from lakehub.db.lease_renewal import keep_renewed
from lakehub.kernel.registry import UnknownPlugin
from lakehub.source_databases.deadline import deadline
from lakehub.source_databases.interruption import Interruption, interruptible
from quality.domain.language import THIS, Name
from quality.engines.scans.parts import CannotRead
from quality.measuring import concurrency
from quality.measuring.resources import resource_of_connection, resource_of_table
from quality.measuring.table_bindings import TableBindings
from quality.models import SLOW_SOURCES, ConcurrencySlot, SlowSource

logger = logging.getLogger(__name__)

SLOW_AFTER = timedelta(seconds=5)
LEASE = timedelta(seconds=30)
_REASON = (
    "it was slow, and as many workers wait for slow sources as may (LAKEHUB_SLOW_SOURCES): it is read again in its turn"
)


class SourceDeferred(RuntimeError):
    """The source is slow, and others wait for such already: it is read later."""


@contextmanager
def watched(resources: Collection[str], token: str) -> Iterator[None]:
    """Around what reads these resources by a claim with this token, whose slots somebody else extends.

    Raises SourceDeferred where it was interrupted: whatever the block has read then is worth nothing.
    """
    sources = list(resources)
    began = time.monotonic()
    with interruptible() as interruption:
        watch = _Watch(sources, token, interruption)
        with deadline(SLOW_AFTER, watch.look) as is_slow:
            yield
        if interruption.reason:
            raise SourceDeferred(interruption.reason)
    if not is_slow.is_set() and time.monotonic() - began < SLOW_AFTER.total_seconds():
        SlowSource.objects.filter(resource__in=sources).delete()


@contextmanager
def source_turn(copy: DatasetCopy) -> Iterator[None]:
    """Around a look at the copy's own table that no claim is made for. Raises SourceDeferred, before or after it began."""
    with _turn(_resource_of(copy)):
        yield


@contextmanager
def connection_turn(connection: Connection, table: str) -> Iterator[None]:
    """The same around a look at a table of a connection, onboarded or not. Raises StorageUnreachable where it is deferred."""
    try:
        with _turn(_resource_of_connection(connection, table)):
            yield
    except SourceDeferred as deferred:
        raise StorageUnreachable(f"{connection} was not looked at: {deferred}") from deferred


@contextmanager
def _turn(resource: str) -> Iterator[None]:
    """Raises SourceDeferred, before or after the block began."""
    token = uuid4().hex
    if ":" not in resource:
        yield
        return
    if concurrency.slow_among([resource]):
        with transaction.atomic():
            has_slot = concurrency.take_slots(ConcurrencySlot.limits_of(SLOW_SOURCES), token, LEASE)
        if not has_slot:
            raise SourceDeferred(_REASON)
    with ExitStack() as ends:
        ends.callback(concurrency.release_slots, token)
        ends.enter_context(keep_renewed(partial(concurrency.extend_slots, token, until=LEASE), every=LEASE / 3))
        ends.enter_context(watched([resource], token))
        yield


def _resource_of(copy: DatasetCopy) -> str:
    try:
        return resource_of_table(TableBindings(copy).binding_of(Name(THIS)))
    except CannotRead:
        return ""  # whoever reads it will say so


def _resource_of_connection(connection: Connection, table: str) -> str:
    try:
        return resource_of_connection(connection.name, connection.storage.table(table))
    except (CannotRead, MetadataUnavailable, UnknownPlugin):
        return ""  # whoever reads it will say so


class _Watch:
    """Looks from another thread, once a second, when the block has become slow."""

    def __init__(self, sources: list[str], token: str, interruption: Interruption) -> None:
        self._sources, self._token, self._interruption = sources, token, interruption
        self._may_go_on = False

    def look(self) -> None:
        if self._may_go_on:
            return
        if not self._interruption.reason:
            try:
                self._may_go_on = self._take_slot()
            except Error:
                logger.warning("Whether a slow source may be waited for is not known; it is asked again", exc_info=True)
                return
            finally:
                own_database.close()
        if not self._may_go_on:
            self._interruption.interrupt(_REASON)

    def _take_slot(self) -> bool:
        SlowSource.objects.bulk_create(
            [SlowSource(resource=resource) for resource in self._sources], ignore_conflicts=True
        )
        with transaction.atomic():
            return concurrency.take_slots(ConcurrencySlot.limits_of(SLOW_SOURCES), self._token, LEASE)
