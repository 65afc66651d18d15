"""Alerts as a number: of how many datasets somebody would hear, whatever category fails, and what the others lack."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from datetime import datetime

from django.core.cache import cache
from django.db.models import Prefetch, Q

from incidents.channels import CHANNELS
from incidents.domain.alerting.routing import AlertLabels
from incidents.models import Alert, Route
from incidents.notifications.recipients import team_recipients
from lakehub.catalog.models import Dataset
from lakehub.kernel.registry import UnknownPlugin
from quality.generation.coverage import REQUIRED_TIERS, TierCoverage, UncoveredDataset
from quality.models import Category


def alert_coverage(tiers: Collection[int] = REQUIRED_TIERS, *, now: datetime) -> TierCoverage:
    """Covered: it has an alert for each category, made for the present version of its metadata, none is muted, and of each
    somebody is told. Three queries."""
    live = Dataset.objects.filter(
        Q(offboarded_at=None) | Q(offboarded_at__gt=now), tier__in=tiers, onboarded_at__lte=now
    )
    alerts = Prefetch("alerts", Alert.objects.all(), to_attr="made_alerts")
    datasets = list(live.select_related("team").prefetch_related(alerts).order_by("tier", "name"))
    routes = _routes()
    lacking = ((dataset, tuple(_problems_of(dataset, routes[dataset.team_id]))) for dataset in datasets)
    uncovered = tuple(
        UncoveredDataset(dataset.name, dataset.tier, dataset.team.name, why) for dataset, why in lacking if why
    )
    return TierCoverage(tuple(sorted(tiers)), len(datasets), uncovered)


def cached_coverage(tiers: Collection[int] = REQUIRED_TIERS, *, now: datetime) -> TierCoverage:
    """As it was at its first time within this minute: for what is looked at all the time."""
    cache_key = f"alert-coverage:{','.join(map(str, sorted(tiers)))}:{now:%Y%m%d%H%M}"
    coverage: TierCoverage | None = cache.get(cache_key)
    if coverage is None:
        coverage = alert_coverage(tiers, now=now)
        cache.set(cache_key, coverage, timeout=60)
    return coverage


def _routes() -> dict[int, list[Route]]:
    routes_by_team: dict[int, list[Route]] = defaultdict(list)
    for route in Route.objects.all():
        routes_by_team[route.team_id].append(route)
    return routes_by_team


def _problems_of(dataset: Dataset, routes: list[Route]) -> Iterator[str]:
    alerts_by_category: dict[str, Alert] = {alert.category: alert for alert in dataset.made_alerts}  # type: ignore[attr-defined]  # prefetched
    missing = [category for category in Category.values if category not in alerts_by_category]
    if missing:
        yield f"it has no alert for {', '.join(missing)} yet"
    behind = [alert for alert in alerts_by_category.values() if alert.metadata_version < dataset.metadata_version]
    if behind:
        yield f"its alerts are of version {behind[0].metadata_version} of its metadata, which is at {dataset.metadata_version}"
    for alert in alerts_by_category.values():
        if alert.setting.muted:
            yield f"{alert.category} is muted by {alert.overridden_by}: {alert.setting.why}"
    yield from _unrouted_alerts(
        dataset, [alert for alert in alerts_by_category.values() if not alert.setting.muted], routes
    )


def _unrouted_alerts(dataset: Dataset, alerts: list[Alert], routes: list[Route]) -> Iterator[str]:
    team = dataset.team
    nobody: list[str] = []
    for alert in alerts:
        matter = AlertLabels(dataset.tier, alert.category, alert.setting.severity)
        recipients = team_recipients(team, matter, routes=routes)
        if recipients and not any(_reaches_people(recipient.channel) for recipient in recipients):
            yield f"its messages end in the log: team {team.name} named no address"
            return
        if not recipients:
            nobody.append(str(alert.category))
    if nobody:
        yield f"no route of team {team.name} takes its {', '.join(nobody)}"


def _reaches_people(channel: str) -> bool:
    """One that is not installed (any more) ought to; its deliveries fail, and say so."""
    try:
        return CHANNELS.get(channel).reaches_people
    except UnknownPlugin:
        return True
