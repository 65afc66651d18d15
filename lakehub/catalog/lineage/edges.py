"""The newest lineage in our tables: what lineage tells of, onboarded or not, and the edges between datasets that follow."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db import transaction
from django.db.models import F

from lakehub import bulk
from lakehub.accounts import audit
from lakehub.catalog.lineage import Reading, TableName
from lakehub.catalog.lineage.resolving import Resolver
from lakehub.catalog.models import Dataset, LineageEdge, LineageLink, LineageTable
from lakehub.catalog.pushing import metadata_changed
from lakehub.kernel.errors import Refused

ACTOR = "lineage"
GUARDED_FROM = 10
"""With fewer links than this, losing most of them is not strange."""


def take_in(reading: Reading, *, source: str, accept_loss: bool = False, now: datetime) -> dict[str, list[str]]:
    """Replaces the lineage that was known. By `added` and `pruned`, the edges that changed. Raises Refused, see below."""
    with transaction.atomic():
        if not accept_loss:
            _refuse_a_loss(reading)
        numbers = _write_tables(reading)
        _write_links(reading, numbers)
        return connect(source=source, now=now)


def _refuse_a_loss(reading: Reading) -> None:
    """A source that lost its events must not take the edges along."""
    known = LineageLink.objects.count()
    if known >= GUARDED_FROM and len(reading.links) < known / 2:
        raise Refused(
            f"Lineage tells of {len(reading.links)} links, and of {known} the last time: nothing was changed. "
            "Look whether events are missing; `manage.py lineage --accept-loss` takes it as it is."
        )


def _write_tables(reading: Reading) -> dict[TableName, int]:
    rows = [
        LineageTable(namespace=table.namespace, name=table.name, dropped=table in reading.dropped)
        for table in sorted(reading.tables)
    ]
    LineageTable.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["namespace", "name"],
        update_fields=["dropped"],
        batch_size=500,
    )
    known = LineageTable.objects.values_list("namespace", "name", "pk")
    numbers = {TableName(namespace, name): number for namespace, name, number in known}
    LineageTable.objects.filter(pk__in=[numbers[table] for table in numbers.keys() - reading.tables]).delete()
    return numbers


def _write_links(reading: Reading, numbers: dict[TableName, int]) -> None:
    LineageLink.objects.all().delete()
    LineageLink.objects.bulk_create(
        [
            LineageLink(
                upstream_id=numbers[link.upstream],
                downstream_id=numbers[link.downstream],
                one_to_one=link.one_to_one,
            )
            for link in sorted(reading.links)
        ],
        batch_size=500,
    )


def connect(*, source: str, now: datetime) -> dict[str, list[str]]:
    """Says of each table of lineage what it is here, and makes the edges between datasets so. Call it in a transaction.

    What a person said of a pair stays. A dataset that is compared with another upstream than before gets a new version
    of its metadata.
    """
    _resolve()
    links = LineageLink.objects.exclude(upstream__dataset=None).exclude(downstream__dataset=None)
    wanted: dict[tuple[int, int], bool] = {}
    for upstream, downstream, one_to_one in links.values_list(
        "upstream__dataset_id", "downstream__dataset_id", "one_to_one"
    ):
        if upstream != downstream:
            wanted[upstream, downstream] = wanted.get((upstream, downstream), False) or one_to_one
    edges = LineageEdge.objects.select_related("upstream", "downstream")
    known = {(edge.upstream_id, edge.downstream_id): edge for edge in edges}
    ours = {pair: edge for pair, edge in known.items() if edge.source}
    gone = [edge for pair, edge in ours.items() if wanted.get(pair) != edge.one_to_one]
    LineageEdge.objects.filter(pk__in=[edge.pk for edge in gone]).delete()
    kept = {pair for pair, edge in known.items() if edge not in gone}
    new = [
        LineageEdge(upstream_id=pair[0], downstream_id=pair[1], one_to_one=one_to_one, source=source)
        for pair, one_to_one in sorted(wanted.items())
        if pair not in kept
    ]
    LineageEdge.objects.bulk_create(new)
    return _tell(new, gone, now=now)


_FOUND = ("connection_id", "object", "dataset_id")
"""What is known here of a table of lineage."""


def _resolve() -> None:
    """Writes what changed only: this goes on within the transaction of each onboarding."""
    resolver = Resolver()
    changed = []
    for table in LineageTable.objects.all():
        was = [getattr(table, name) for name in _FOUND]
        wanted = TableName(table.namespace, table.name)
        table.connection, table.object = resolver.table(wanted)
        table.dataset = resolver.dataset(wanted)
        if [getattr(table, name) for name in _FOUND] != was:
            changed.append(table)
    bulk.update(changed, ["connection", "object", "dataset"])


def _tell(new: Iterable[LineageEdge], gone: Iterable[LineageEdge], *, now: datetime) -> dict[str, list[str]]:
    """The audit, the new versions of metadata, and what to report."""
    told: dict[str, list[str]] = {"added": [], "pruned": []}
    changed = set()
    for kind, edges in (("added", new), ("pruned", gone)):
        for edge in edges:
            how = "one to one" if edge.one_to_one else "not one to one"
            told[kind].append(f"{edge} ({how})")
            subject = f"dataset:{edge.downstream.name}"
            audit.record(
                ACTOR, f"edge {kind}", subject, now=now, upstream=edge.upstream.name, one_to_one=edge.one_to_one
            )
            changed |= {edge.downstream_id} if edge.one_to_one else set()
    if changed:
        Dataset.objects.filter(pk__in=changed).update(metadata_version=F("metadata_version") + 1)
        metadata_changed()
    return told
