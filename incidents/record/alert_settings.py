"""What a failure is worth now: the alert of its dataset and category, or the template where none is made yet."""

from __future__ import annotations

from incidents.domain.alerting import routing
from incidents.domain.alerting.routing import AlertLabels, AlertSetting, AlertTemplate
from incidents.models import Alert
from lakehub.catalog.models import Dataset
from quality.domain.slas import TIERS, BadOverride, slas_for_tier


def setting_of(dataset: Dataset, category: str) -> AlertSetting:
    alert = Alert.objects.filter(dataset=dataset, category=category).first()
    return alert.setting if alert is not None else AlertSetting(alert_template_of(dataset, category).severity)


def alert_template_of(dataset: Dataset, category: str) -> AlertTemplate:
    """By the tier and its urgency; overrides that cannot be read do not count."""
    try:
        slas = slas_for_tier(dataset.tier, dataset.overrides, freshness=dataset.freshness_sla)
    except BadOverride:
        slas = TIERS[dataset.tier]
    return routing.alert_template(dataset.tier, slas.severity, category)


def labels_of(dataset: Dataset, category: str, tone: AlertSetting) -> AlertLabels:
    return AlertLabels(dataset.tier, category, tone.severity)
