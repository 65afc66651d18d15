"""The newest lineage in our tables: what lineage tells of, onboarded or not, and the edges between datasets that follow."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from lakehub.accounts.audit import audit_log
from lakehub.accounts.models import Team
from lakehub.catalog.datasets.wake_on_change import wake_on_metadata_change
from lakehub.catalog.lineage import LineageSnapshot, TableLink, TableName
from lakehub.catalog.lineage.resolver import Resolver
from lakehub.catalog.models import Dataset, LineageEdge, LineageLink, LineageTable
from lakehub.catalog.models.lineage import PIPELINE_SOURCE
from lakehub.db import bulk_update
from lakehub.kernel.errors import Refused

ACTOR = "lineage"
LOSS_CHECK_MIN_LINKS = 10
"""With fewer links than this, losing most of them is not strange."""
_MAX_NAMED = 5_000
"""Tables or datasets by which a query is narrowed: databases bound the values of a query."""


def replace_lineage(
    reading: LineageSnapshot,
    *,
    source: str,
    team: Team | None = None,
    touched: frozenset[TableName] | None = None,
    accept_loss: bool = False,
    now: datetime,
) -> dict[str, list[str]]:
    """Replaces the lineage that was known of the source that is read, or of the events that programs of `team` posted.
    By `added` and `pruned`, the edges that changed. `touched`: tables, without which the team's links are as they were: nothing else is looked at. Raises Refused, see below."""
    with transaction.atomic():
        take_turn()
        known = LineageLink.objects.filter(team=team)
        if not accept_loss:
            _refuse_large_loss(reading, known)
        if team is None:
            _write_tables(reading)
        concerned = _write_links(reading, known, team, touched)
        numbers = None if concerned is None or len(concerned) > _MAX_NAMED else [*_numbers(concerned).values()]
        report = rebuild_edges(source=source, tables=numbers, now=now)
        _delete_tables_without_links(numbers)
        return report


def take_turn() -> None:
    """One after the other: lineage is replaced by whoever reads it and by all who post it. The first team's row stands for it."""
    Team.objects.select_for_update(no_key=True).order_by("pk").first()


def _refuse_large_loss(reading: LineageSnapshot, links: QuerySet[LineageLink]) -> None:
    """A source that lost its events must not take the edges along."""
    link_count = links.count()
    if link_count >= LOSS_CHECK_MIN_LINKS and len(reading.links) < link_count / 2:
        raise Refused(
            f"Lineage tells of {len(reading.links)} links, and of {link_count} the last time: nothing was changed. "
            "Look whether events are missing; `manage.py lineage --accept-loss` takes it as it is."
        )


def _write_tables(reading: LineageSnapshot) -> None:
    """Whether a table was dropped is for the source to say that is read: what a team posted takes only its own links away."""
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
    numbers = _numbers(None)
    unmentioned = [numbers[table] for table in numbers.keys() - reading.tables]
    LineageTable.objects.filter(pk__in=unmentioned, dropped=True).update(dropped=False)


def _numbers(tables: Collection[TableName] | None) -> dict[TableName, int]:
    """Of those `tables` that are known; None: of all."""
    rows = LineageTable.objects.all()
    if tables is not None and len(tables) <= _MAX_NAMED:
        namespaces, names = {table.namespace for table in tables}, {table.name for table in tables}
        rows = rows.filter(namespace__in=namespaces, name__in=names)
    numbers = {
        TableName(namespace, name): number for namespace, name, number in rows.values_list("namespace", "name", "pk")
    }
    return numbers if tables is None else {table: numbers[table] for table in tables if table in numbers}


def _delete_tables_without_links(numbers: Collection[int] | None) -> None:
    links = LineageLink.objects.filter(Q(upstream=OuterRef("pk")) | Q(downstream=OuterRef("pk")))
    tables = LineageTable.objects.filter(~Exists(links), dropped=False)
    (tables if numbers is None else tables.filter(pk__in=numbers)).delete()


def _write_links(
    reading: LineageSnapshot, known: QuerySet[LineageLink], team: Team | None, touched: frozenset[TableName] | None
) -> frozenset[TableName] | None:
    """Writes what changed only: of many thousand links that a team posted, an event tells of a few. The tables that are concerned: those `touched`, and the ends of what changed; None: any."""
    wanted = reading.links
    if touched is not None:
        numbers = [*_numbers(touched).values()]
        known = known.filter(Q(upstream__in=numbers) | Q(downstream__in=numbers))
        wanted = frozenset(link for link in wanted if link.upstream in touched or link.downstream in touched)
    stored = _stored_links(known)
    gone, new = stored.keys() - wanted, sorted(wanted - stored.keys())
    LineageLink.objects.filter(pk__in=[stored[link] for link in gone]).delete()
    ends = frozenset(end for link in (*gone, *new) for end in (link.upstream, link.downstream))
    of_ends = _numbers_made(ends)
    LineageLink.objects.bulk_create(
        [
            LineageLink(
                upstream_id=of_ends[link.upstream],
                downstream_id=of_ends[link.downstream],
                one_to_one=link.one_to_one,
                team=team,
            )
            for link in new
        ],
        batch_size=500,
    )
    return None if touched is None else touched | ends


def _stored_links(links: QuerySet[LineageLink]) -> dict[TableLink, int]:
    fields = ("upstream__namespace", "upstream__name", "downstream__namespace", "downstream__name", "one_to_one")
    return {
        TableLink(TableName(*ends[:2]), TableName(*ends[2:]), one_to_one): pk
        for pk, *ends, one_to_one in links.values_list("pk", *fields)
    }


def _numbers_made(tables: frozenset[TableName]) -> dict[TableName, int]:
    """Those that are not known are made."""
    unknown = sorted(tables - _numbers(tables).keys())
    new = [LineageTable(namespace=table.namespace, name=table.name) for table in unknown]
    LineageTable.objects.bulk_create(new, batch_size=500)
    return _numbers(tables)


def rebuild_edges(*, source: str, tables: Collection[int] | None = None, now: datetime) -> dict[str, list[str]]:
    """Says of each table of lineage what it is here, and makes the edges between datasets so. Call it in a transaction.

    What a person said of a pair stays, and so do the edges of pipelines. What a team posted counts for datasets of this team. A dataset that is compared with another upstream than before gets a new version
    of its metadata. `tables`: numbers of those that may be others, or have other links, than when this was done last; None: all.
    """
    datasets = _resolve_tables(tables)
    one_to_one_by_pair = _linked_pairs(datasets)
    edges = LineageEdge.objects.select_related("upstream", "downstream")
    if datasets is not None:
        edges = edges.filter(upstream__in=datasets, downstream__in=datasets)
    edges_by_pair = {(edge.upstream_id, edge.downstream_id): edge for edge in edges}
    lineage_edges = {pair: edge for pair, edge in edges_by_pair.items() if edge.source not in ("", PIPELINE_SOURCE)}
    gone = [edge for pair, edge in lineage_edges.items() if one_to_one_by_pair.get(pair) != edge.one_to_one]
    LineageEdge.objects.filter(pk__in=[edge.pk for edge in gone]).delete()
    kept_pairs = {pair for pair, edge in edges_by_pair.items() if edge not in gone}
    new = [
        LineageEdge(upstream_id=pair[0], downstream_id=pair[1], one_to_one=one_to_one, source=source)
        for pair, one_to_one in sorted(one_to_one_by_pair.items())
        if pair not in kept_pairs
    ]
    LineageEdge.objects.bulk_create(new)
    return _record_edge_changes(new, gone, now=now)


def _linked_pairs(datasets: Collection[int] | None) -> dict[tuple[int, int], bool]:
    """By upstream and downstream whether it is one to one; with `datasets` of pairs of these."""
    links = LineageLink.objects.exclude(upstream__dataset=None).exclude(downstream__dataset=None)
    links = links.filter(Q(team=None) | Q(team=F("downstream__dataset__team")))
    if datasets is not None:
        links = links.filter(upstream__dataset__in=datasets, downstream__dataset__in=datasets)
    pairs: dict[tuple[int, int], bool] = {}
    for upstream, downstream, one_to_one in links.values_list(
        "upstream__dataset_id", "downstream__dataset_id", "one_to_one"
    ):
        if upstream != downstream:
            pairs[upstream, downstream] = pairs.get((upstream, downstream), False) or one_to_one
    return pairs


_RESOLVED_FIELDS = ("connection_id", "object", "dataset_id")
"""What is known here of a table of lineage."""


def _resolve_tables(numbers: Collection[int] | None) -> set[int] | None:
    """Writes what changed only: this goes on within the transaction of each onboarding. The datasets between which edges may be others now; None: between any."""
    resolver, changed, datasets = Resolver(), [], set[int | None]()
    for table in LineageTable.objects.all() if numbers is None else LineageTable.objects.filter(pk__in=numbers):
        was = [getattr(table, name) for name in _RESOLVED_FIELDS]
        table_name = TableName(table.namespace, table.name)
        table.connection, table.object = resolver.table(table_name)
        table.dataset = resolver.dataset(table_name)
        datasets |= {was[-1], table.dataset_id}
        if [getattr(table, name) for name in _RESOLVED_FIELDS] != was:
            changed.append(table)
    bulk_update.bulk_update(changed, ["connection", "object", "dataset"])
    if numbers is None:
        return None
    links = LineageLink.objects.filter(Q(upstream__in=changed) | Q(downstream__in=changed))
    for ends in links.values_list("upstream__dataset_id", "downstream__dataset_id") if changed else ():
        datasets |= {*ends}
    known = {dataset for dataset in datasets if dataset is not None}
    return known if len(known) <= _MAX_NAMED else None


def _record_edge_changes(
    new: Iterable[LineageEdge], gone: Iterable[LineageEdge], *, now: datetime
) -> dict[str, list[str]]:
    """The audit, the new versions of metadata, and what to report."""
    report: dict[str, list[str]] = {"added": [], "pruned": []}
    changed = set()
    for kind, edges in (("added", new), ("pruned", gone)):
        for edge in edges:
            how = "one to one" if edge.one_to_one else "not one to one"
            report[kind].append(f"{edge} ({how})")
            subject = f"dataset:{edge.downstream.name}"
            audit_log.record(
                ACTOR, f"edge {kind}", subject, now=now, upstream=edge.upstream.name, one_to_one=edge.one_to_one
            )
            changed |= {edge.downstream_id} if edge.one_to_one else set()
    if changed:
        Dataset.objects.filter(pk__in=changed).update(metadata_version=F("metadata_version") + 1)
        wake_on_metadata_change()
    return report
