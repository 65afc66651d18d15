"""How the alerts of a dataset are set, put together for pages and programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Max

from incidents import alerts, channels
from incidents.domain.precedence import suppressors_of
from incidents.domain.routing import Recipient
from incidents.messages.addressees import of_team
from incidents.messages.holding import pairs_of
from incidents.models import Alert, Route
from incidents.tones import matter_of
from lakehub.catalog.models import Dataset
from quality.models import Test


@dataclass(frozen=True)
class Tells:
    """An address that is told, as everybody may see it."""

    channel: str
    shown_address: str
    why: str
    waits: bool


@dataclass(frozen=True)
class AlertInForce:
    """One category of a dataset: what its failure is worth, when it counts, who hears of it."""

    alert: Alert
    told: tuple[Tells, ...]
    suppressed_by: tuple[str, ...]
    sustain: timedelta | None
    """The longest of its tests; None: no test."""


def of_dataset(dataset: Dataset) -> list[AlertInForce]:
    """In the order of the categories. Four queries."""
    routes = list(Route.objects.filter(team=dataset.team_id).select_related("team"))
    pairs = pairs_of(dataset)
    live = Test.objects.filter(dataset=dataset, retired_at=None).order_by()
    sustains = dict(live.values_list("category").annotate(longest=Max("version__sustain")))
    return [
        AlertInForce(
            alert,
            tuple(map(_tells, _told(alert, dataset, routes))),
            tuple(sorted(suppressors_of(alert.category, pairs))),
            sustains.get(alert.category),
        )
        for alert in alerts.of_dataset(dataset)
    ]


def _told(alert: Alert, dataset: Dataset, routes: Sequence[Route]) -> list[Recipient]:
    if alert.tone.muted:
        return []
    return of_team(dataset.team, matter_of(dataset, alert.category, alert.tone), routes=routes)


def _tells(one: Recipient) -> Tells:
    return Tells(one.channel, channels.shown(one.channel, one.address), one.why, one.waits)
