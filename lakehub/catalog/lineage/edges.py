"""The newest lineage in our tables: what lineage tells of, onboarded or not, and the edges between datasets that follow."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from lakehub.accounts.audit import audit_log
from lakehub.accounts.models import Team
from lakehub.catalog.datasets.wake_on_change import wake_on_metadata_change
from lakehub.catalog.lineage import LineageSnapshot, TableName
from lakehub.catalog.lineage.resolver import Resolver
from lakehub.catalog.models import Dataset, LineageEdge, LineageLink, LineageTable
from lakehub.catalog.models.lineage import PIPELINE_SOURCE
from lakehub.db import bulk_update
from lakehub.kernel.errors import Refused

ACTOR = "lineage"
LOSS_CHECK_MIN_LINKS = 10
"""With fewer links than this, losing most of them is not strange."""


def replace_lineage(
    reading: LineageSnapshot, *, source: str, team: Team | None = None, accept_loss: bool = False, now: datetime
) -> dict[str, list[str]]:
    """Replaces the lineage that was known of the source that is read, or of the events that programs of `team` posted.
    By `added` and `pruned`, the edges that changed. Raises Refused, see below."""
    with transaction.atomic():
        take_turn()
        links = LineageLink.objects.filter(team=team)
        if not accept_loss:
            _refuse_large_loss(reading, links)
        numbers = _write_tables(reading, is_posted=team is not None)
        _write_links(reading, numbers, links, team)
        _delete_tables_without_links()
        return rebuild_edges(source=source, now=now)


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


def _write_tables(reading: LineageSnapshot, *, is_posted: bool) -> dict[TableName, int]:
    """Whether a table was dropped is for the source to say that is read: what a team posted takes only its own links away."""
    if is_posted:
        unknown = reading.linked - _numbers().keys()
        new = [LineageTable(namespace=table.namespace, name=table.name) for table in sorted(unknown)]
        LineageTable.objects.bulk_create(new, batch_size=500)
        return _numbers()
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
    numbers = _numbers()
    unmentioned = [numbers[table] for table in numbers.keys() - reading.tables]
    LineageTable.objects.filter(pk__in=unmentioned, dropped=True).update(dropped=False)
    return numbers


def _numbers() -> dict[TableName, int]:
    stored_tables = LineageTable.objects.values_list("namespace", "name", "pk")
    return {TableName(namespace, name): number for namespace, name, number in stored_tables}


def _delete_tables_without_links() -> None:
    links = LineageLink.objects.filter(Q(upstream=OuterRef("pk")) | Q(downstream=OuterRef("pk")))
    LineageTable.objects.filter(~Exists(links), dropped=False).delete()


def _write_links(
    reading: LineageSnapshot, numbers: dict[TableName, int], known: QuerySet[LineageLink], team: Team | None
) -> None:
    """Writes what changed only: of many thousand links that a team posted, an event tells of a few."""
    wanted = {(numbers[link.upstream], numbers[link.downstream], link.one_to_one) for link in reading.links}
    stored = {tuple(link): pk for pk, *link in known.values_list("pk", "upstream_id", "downstream_id", "one_to_one")}
    gone = [pk for link, pk in stored.items() if link not in wanted]
    LineageLink.objects.filter(pk__in=gone).delete()
    LineageLink.objects.bulk_create(
        [
            LineageLink(upstream_id=upstream, downstream_id=downstream, one_to_one=one_to_one, team=team)
            for upstream, downstream, one_to_one in sorted(wanted - stored.keys())
        ],
        batch_size=500,
    )


def rebuild_edges(*, source: str, now: datetime) -> dict[str, list[str]]:
    """Says of each table of lineage what it is here, and makes the edges between datasets so. Call it in a transaction.

    What a person said of a pair stays, and so do the edges of pipelines. What a team posted counts for datasets of this team. A dataset that is compared with another upstream than before gets a new version
    of its metadata.
    """
    _resolve_tables()
    links = LineageLink.objects.exclude(upstream__dataset=None).exclude(downstream__dataset=None)
    links = links.filter(Q(team=None) | Q(team=F("downstream__dataset__team")))
    one_to_one_by_pair: dict[tuple[int, int], bool] = {}
    for upstream, downstream, one_to_one in links.values_list(
        "upstream__dataset_id", "downstream__dataset_id", "one_to_one"
    ):
        if upstream != downstream:
            one_to_one_by_pair[upstream, downstream] = (
                one_to_one_by_pair.get((upstream, downstream), False) or one_to_one
            )
    edges = LineageEdge.objects.select_related("upstream", "downstream")
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


_RESOLVED_FIELDS = ("connection_id", "object", "dataset_id")
"""What is known here of a table of lineage."""


def _resolve_tables() -> None:
    """Writes what changed only: this goes on within the transaction of each onboarding."""
    resolver = Resolver()
    changed = []
    for table in LineageTable.objects.all():
        was = [getattr(table, name) for name in _RESOLVED_FIELDS]
        table_name = TableName(table.namespace, table.name)
        table.connection, table.object = resolver.table(table_name)
        table.dataset = resolver.dataset(table_name)
        if [getattr(table, name) for name in _RESOLVED_FIELDS] != was:
            changed.append(table)
    bulk_update.bulk_update(changed, ["connection", "object", "dataset"])


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
