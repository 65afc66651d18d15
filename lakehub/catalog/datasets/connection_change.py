"""A connection gets another URL: a password that was rotated, or a server that moved. Told first, tried first, audited.

No URL is shown or kept anywhere but in the connection: what is told of it is where it leads.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from lakehub.accounts.audit import audit_log
from lakehub.catalog.connections import check_url, place_of, role_facts
from lakehub.catalog.datasets.copies import CopySource, check_distinct_tables, copy_sources
from lakehub.catalog.datasets.wake_on_change import wake_on_metadata_change
from lakehub.catalog.metadata import MetadataUnavailable, NoSuchTable
from lakehub.catalog.metadata.roles import DatabaseRole, role_warning
from lakehub.catalog.metadata.table_locations import NamedTable, is_same_table
from lakehub.catalog.models import Connection, Dataset, DatasetCopy
from lakehub.catalog.ports import Consequence, loop_problem, retest_copies, running_jobs
from lakehub.catalog.storages import UncertainLocation
from lakehub.catalog.validation import Problems
from lakehub.kernel.errors import Conflict, NotFound
from lakehub.kernel.partitions.form import split_columns
from lakehub.kernel.suggest import did_you_mean

MAX_NAMED = 20


@dataclass(frozen=True)
class ConnectionChange:
    """What another URL means. `moved`: the copies whose rows lie elsewhere then, both those that are read and that are loaded."""

    leads_from: str
    leads_to: str
    readers: tuple[str, ...]
    moved: tuple[DatasetCopy, ...]
    role: DatabaseRole | None = None

    @property
    def consequences(self) -> list[Consequence]:
        return [Consequence("reads", line) for line in self._read_lines()] + [
            Consequence("gate", f"{copy}: unknown until it was read anew") for copy in self._monitored()[:MAX_NAMED]
        ]

    def _read_lines(self) -> Iterable[str]:
        if not self.moved:
            yield f"It leads where it did, to {self.leads_to}: nothing is read again, and no verdict changes"
        else:
            yield f"It leads to {self.leads_to} instead of {self.leads_from}"
        loaded = [copy for copy in self.moved if copy.dataset.ingested]
        yield f"Read by it: {_listed(self.readers) or 'nothing yet'}"
        if loaded:
            names = _listed(sorted({copy.dataset.name for copy in loaded}))
            yield f"Loaded from there on, from their checkpoints on: {names}"
        if self.role is not None and not self.role.only_reads:
            yield role_warning(self.role)
        if self._monitored():
            yield f"Tested again in all of their partitions: {_listed([str(copy) for copy in self._monitored()])}"

    def _monitored(self) -> list[DatasetCopy]:
        return [copy for copy in self.moved if not copy.dataset.ingested]


def check_connection_change(
    connection: Connection, url: str, *, actor: str, now: datetime, by_operator: bool = False
) -> ConnectionChange:
    """Tries the URL and every table that is read by the connection. Raises Refused, without the password.

    It changes nothing; that the place was tried is in the audit log.
    """
    subject = f"connection:{connection.name}"
    test = check_url(connection.plugin, url, subject=subject, actor=actor, now=now, by_operator=by_operator)
    changed = Connection(pk=connection.pk, name=connection.name, plugin=connection.plugin, url=url)
    copies = _copies_reading(connection)
    moved_tables = {table for table in {table for _, table in copies} if _lies_elsewhere(connection, changed, table)}
    problems = Problems()
    _check_tables(problems, copies, changed, moved_tables)
    for dataset in {copy.dataset_id: copy.dataset for copy, _ in copies if not copy.dataset.ingested}.values():
        sources = [(center, _with_connection(source, changed)) for center, source in copy_sources(dataset)]
        check_distinct_tables(problems, sources, name="url")
    problems.raise_if_any()
    moved = tuple(copy for copy, table in copies if table in moved_tables)
    _refuse_loops(changed, moved)
    return ConnectionChange(
        place_of(connection.plugin, connection.url),
        place_of(changed.plugin, changed.url),
        tuple(sorted({copy.dataset.name for copy, _ in copies})),
        moved,
        test.role,
    )


def _refuse_loops(changed: Connection, moved: Sequence[DatasetCopy]) -> None:
    """By where the copies would be: what is written for it is taken back. Raises Refused."""
    monitored = {copy.dataset_id: copy.dataset for copy in moved if not copy.dataset.ingested}
    problems = Problems()
    with transaction.atomic():
        Connection.objects.filter(pk=changed.pk).update(url=changed.url)
        for dataset in monitored.values():
            if problem := loop_problem(dataset.pk):
                problems.add("url", problem)
        transaction.set_rollback(True)
    problems.raise_if_any()


def _lies_elsewhere(connection: Connection, changed: Connection, table: str) -> bool:
    """Whether its rows are others by the new URL. What a password that is refused by now cannot tell is taken from where the URL leads."""
    before = connection.table_location(table)
    if is_same_table(before, changed.table_location(table)):
        return False
    if not isinstance(before, NamedTable):
        return True
    try:
        led_to, leads_to = connection.storage.location(), changed.storage.location()
    except MetadataUnavailable:
        return True
    return led_to != leads_to or isinstance(leads_to, UncertainLocation)


def change_connection(
    connection: Connection, url: str, *, actor: str, now: datetime, by_operator: bool = False
) -> ConnectionChange:
    """Raises Refused, or Conflict where a job loads from there now, or somebody else was faster."""
    change = check_connection_change(connection, url, actor=actor, now=now, by_operator=by_operator)
    with transaction.atomic():
        at_work = running_jobs([copy.pk for copy in change.moved])
        if at_work:
            raise Conflict(
                f"{', '.join(at_work)}: a job is at work. Nothing was changed; change it when that has ended."
            )
        stored = Connection.objects.select_for_update().get(pk=connection.pk)
        if stored.url != connection.url:
            raise Conflict(
                f"Connection `{connection.name}` was changed by somebody else just now; nothing was changed."
            )
        Connection.objects.filter(pk=connection.pk).update(url=url, role_facts=role_facts(change.role))
        monitored = [copy.pk for copy in change.moved if not copy.dataset.ingested]
        if monitored:
            retest_copies(monitored, now=now)
        facts = {"was": change.leads_from, "becomes": change.leads_to, "moved": bool(change.moved)}
        audit_log.record(actor, "change connection", f"connection:{connection.name}", now=now, **facts)
        wake_on_metadata_change()
    connection.url, connection.role_facts = url, role_facts(change.role)
    return change


def _copies_reading(connection: Connection) -> list[tuple[DatasetCopy, str]]:
    """The copies of live datasets that are read by it or loaded from it, with the table."""
    copies = DatasetCopy.objects.filter(dataset__offboarded_at=None).select_related(
        "dataset__feed__connection", "connection", "data_center"
    )
    by_feed = copies.filter(connection=None, dataset__feed__connection=connection)
    both = [*copies.filter(connection=connection), *by_feed]
    return [(copy, copy.source[1]) for copy in both if copy.source is not None]


def _check_tables(
    problems: Problems, copies: Sequence[tuple[DatasetCopy, str]], changed: Connection, moved: set[str]
) -> None:
    """Where it leads elsewhere each table must be there, with its columns; where it does not, what was gone stays gone."""
    datasets: dict[str, dict[int, Dataset]] = defaultdict(dict)
    for copy, table in copies:
        datasets[table][copy.dataset_id] = copy.dataset
    for table, readers in datasets.items():
        try:
            columns = changed.storage.describe(table).names
        except MetadataUnavailable as problem:
            if table in moved or not isinstance(problem, NoSuchTable):
                names = _listed(sorted(dataset.name for dataset in readers.values()))
                problems.add("url", f"{names}: {problem}")
            continue
        for dataset in readers.values():
            lacking = [name for name in _columns_read(dataset) if name not in columns]
            if lacking and table in moved:
                problems.add("url", f"{dataset.name}: {table} there has no column {', '.join(lacking)}.")


def _columns_read(dataset: Dataset) -> list[str]:
    feed = dataset.feed_or_none
    named = (*dataset.primary_key, *dataset.record_key, dataset.reference_key)
    named += split_columns(dataset.partition_column)
    return [*dict.fromkeys(filter(None, (*named, dataset.event_time, feed.cursor_column if feed else "")))]


def _with_connection(source: CopySource, changed: Connection) -> CopySource:
    return CopySource(changed, source.table) if source.connection.pk == changed.pk else source


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return f"{', '.join(names[:MAX_NAMED])}{more}"


def readers_of_connection(connection: Connection) -> list[str]:
    """The names of the datasets that are read by it, or loaded from it."""
    return sorted({copy.dataset.name for copy, _ in _copies_reading(connection)})


def find_connection(name: str) -> Connection:
    """Raises NotFound with the nearest name."""
    connection = Connection.objects.select_related("team").filter(name=name).first()
    if connection is None:
        near = did_you_mean(name, Connection.objects.values_list("name", flat=True)[:1000])
        raise NotFound(f"There is no connection `{name}`.{near}")
    return connection
