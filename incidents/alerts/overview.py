"""How the alerts of a dataset are set, put together for pages and programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Max

from incidents import channels
from incidents.alerts import generate
from incidents.domain.alerting.routing import AlertLabels, Recipient
from incidents.domain.alerting.suppression import suppressors_of
from incidents.models import Alert, Route
from incidents.notifications.recipients import team_recipients
from incidents.notifications.send_conditions import suppression_pairs
from lakehub.catalog.models import Dataset
from quality.models import QualityTest


@dataclass(frozen=True)
class RecipientInfo:
    """An address that is told, as everybody may see it."""

    channel: str
    shown_address: str
    why: str
    waits: bool


@dataclass(frozen=True)
class AlertOverview:
    """One category of a dataset: what its failure is worth, when it counts, who hears of it."""

    alert: Alert
    told: tuple[RecipientInfo, ...]
    suppressed_by: tuple[str, ...]
    sustain: timedelta | None
    """The longest of its tests; None: no test."""


def alert_overviews_of(dataset: Dataset) -> list[AlertOverview]:
    """In the order of the categories. Four queries."""
    routes = list(Route.objects.filter(team=dataset.team_id).select_related("team"))
    pairs = suppression_pairs(dataset)
    live = QualityTest.objects.filter(dataset=dataset, retired_at=None).order_by()
    sustains = dict(live.values_list("category").annotate(longest=Max("version__sustain")))
    return [
        AlertOverview(
            alert,
            tuple(map(_recipient_info, _recipients_of(alert, dataset, routes))),
            tuple(sorted(suppressors_of(alert.category, pairs))),
            sustains.get(alert.category),
        )
        for alert in generate.alerts_of(dataset)
    ]


def _recipients_of(alert: Alert, dataset: Dataset, routes: Sequence[Route]) -> list[Recipient]:
    if alert.setting.muted:
        return []
    labels = AlertLabels(dataset.tier, alert.category, alert.setting.severity)
    return team_recipients(dataset.team, labels, routes=routes)


def _recipient_info(recipient: Recipient) -> RecipientInfo:
    return RecipientInfo(
        recipient.channel,
        channels.redacted_address(recipient.channel, recipient.address),
        recipient.reason,
        recipient.may_delay,
    )
