"""Alerts as a number: of how many datasets somebody would hear, whatever category fails, and what the others lack."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from datetime import datetime

from django.core.cache import cache
from django.db.models import Prefetch, Q

from incidents.messages.addressees import LOG, of_team
from incidents.models import Alert, Route
from incidents.tones import matter_of
from lakehub.catalog.models import Dataset
from quality.coverage import HIGHEST, Coverage, Uncovered
from quality.models import Category


def coverage(tiers: Collection[int] = HIGHEST, *, now: datetime) -> Coverage:
    """Covered: it has an alert for each category, made for the present version of its metadata, none is muted, and of each
    somebody is told. Three queries."""
    live = Dataset.objects.filter(
        Q(offboarded_at=None) | Q(offboarded_at__gt=now), tier__in=tiers, onboarded_at__lte=now
    )
    alerts = Prefetch("alerts", Alert.objects.all(), to_attr="made_alerts")
    datasets = list(live.select_related("team").prefetch_related(alerts).order_by("tier", "name"))
    routes = _routes()
    lacking = ((dataset, tuple(_lacks(dataset, routes[dataset.team_id]))) for dataset in datasets)
    uncovered = tuple(Uncovered(one.name, one.tier, one.team.name, why) for one, why in lacking if why)
    return Coverage(tuple(sorted(tiers)), len(datasets), uncovered)


def lately(tiers: Collection[int] = HIGHEST, *, now: datetime) -> Coverage:
    """As it was at its first time within this minute: for what is looked at all the time."""
    known = f"alert-coverage:{','.join(map(str, sorted(tiers)))}:{now:%Y%m%d%H%M}"
    found: Coverage | None = cache.get(known)
    if found is None:
        found = coverage(tiers, now=now)
        cache.set(known, found, timeout=60)
    return found


def _routes() -> dict[int, list[Route]]:
    found: dict[int, list[Route]] = defaultdict(list)
    for route in Route.objects.all():
        found[route.team_id].append(route)
    return found


def _lacks(dataset: Dataset, routes: list[Route]) -> Iterator[str]:
    made: dict[str, Alert] = {alert.category: alert for alert in dataset.made_alerts}  # type: ignore[attr-defined]  # prefetched
    missing = [category for category in Category.values if category not in made]
    if missing:
        yield f"it has no alert for {', '.join(missing)} yet"
    behind = [alert for alert in made.values() if alert.metadata_version < dataset.metadata_version]
    if behind:
        yield f"its alerts are of version {behind[0].metadata_version} of its metadata, which is at {dataset.metadata_version}"
    for alert in made.values():
        if alert.tone.muted:
            yield f"{alert.category} is muted by {alert.overridden_by}: {alert.tone.why}"
    yield from _unheard(dataset, [alert for alert in made.values() if not alert.tone.muted], routes)


def _unheard(dataset: Dataset, alerts: list[Alert], routes: list[Route]) -> Iterator[str]:
    team = dataset.team
    nobody: list[str] = []
    for alert in alerts:
        matter = matter_of(dataset, alert.category, alert.tone)
        told = of_team(team, matter, routes=routes)
        if told and all(one.channel == LOG for one in told):
            yield f"its messages end in the log: team {team.name} named no address"
            return
        if not told:
            nobody.append(str(alert.category))
    if nobody:
        yield f"no route of team {team.name} takes its {', '.join(nobody)}"
