"""The alerts of a dataset, one a category, made from templates when its metadata changes; what a person set there stays."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Count, F, Q, QuerySet

from incidents.domain.alerting import routing
from incidents.domain.alerting.routing import Severity
from incidents.lifecycle import escalate
from incidents.models import Alert, Incident
from incidents.notifications.recipients import alert_setting_of, alert_template_of
from lakehub.accounts.audit import audit_log
from lakehub.catalog.models import Dataset
from lakehub.kernel.error_isolation import log_and_continue
from lakehub.kernel.errors import NotFound, Refused
from lakehub.kernel.suggest import did_you_mean
from quality.models import Category


def generate_outdated_alerts(*, now: datetime, limit: int = 50) -> int:
    """Makes the alerts of live datasets whose metadata is newer than theirs, or that lack one. The number of datasets."""
    waiting = list(_outdated_datasets()[:limit])
    for dataset in waiting:
        with log_and_continue(f"Making the alerts of {dataset}"):
            generate_alerts(dataset, now=now)
    return len(waiting)


def _outdated_datasets() -> QuerySet[Dataset]:
    current = Count("alerts", filter=Q(alerts__metadata_version=F("metadata_version")))
    live = Dataset.objects.filter(offboarded_at=None).annotate(current=current)
    return live.filter(current__lt=len(Category)).order_by("tier", "pk")


def generate_alerts(dataset: Dataset, *, now: datetime) -> list[Alert]:
    """Applies the templates for the present metadata. Running it again changes nothing."""
    with transaction.atomic():
        # Of two workers at once, one makes them.
        dataset = Dataset.objects.select_for_update(of=("self",)).select_related("team").get(pk=dataset.pk)
        before = {category: alert_setting_of(dataset, category).severity for category in Category.values}
        alerts = [_upsert_alert(dataset, category, now=now) for category in Category.values]
        for alert in alerts:
            _escalate_if_louder(alert, before[alert.category], now=now)
    return alerts


def _upsert_alert(dataset: Dataset, category: str, *, now: datetime) -> Alert:
    template = alert_template_of(dataset, category)
    alert, _ = Alert.objects.update_or_create(
        dataset=dataset,
        category=category,
        defaults={
            "severity": template.severity,
            "because": template.because,
            "metadata_version": dataset.metadata_version,
            "generated_at": now,
        },
    )
    return alert


def override_alert(dataset: Dataset, category: str, override: Mapping[str, Any], *, actor: str, now: datetime) -> Alert:
    """Sets what counts in place of the template; an empty `override`: the template counts again. Raises Refused, NotFound."""
    checked_category(category)
    if problems := routing.override_problems(override):
        raise Refused.for_fields(problems)
    given_fields = {name: value for name, value in override.items() if value not in (None, "", False)}
    with transaction.atomic():
        alert = _locked_alert(dataset, category, now=now)
        before = alert.setting.severity
        alert.override = given_fields
        alert.overridden_by, alert.overridden_at = (actor, now) if given_fields else ("", None)
        alert.save(update_fields=["override", "overridden_by", "overridden_at"])
        audit_log.record(actor, "set alert", f"dataset:{dataset.name}", now=now, category=category, **given_fields)
        _escalate_if_louder(alert, before, now=now)
    return alert


def _locked_alert(dataset: Dataset, category: str, *, now: datetime) -> Alert:
    if not Alert.objects.filter(dataset=dataset, category=category).exists():
        generate_alerts(dataset, now=now)
    rows = Alert.objects.select_for_update(of=("self",)).select_related("dataset__team")
    return rows.get(dataset=dataset, category=category)


def checked_category(category: str, name: str = "category") -> str:
    """Raises NotFound with the nearest one."""
    if category not in Category.values:
        raise NotFound(f"There is no {name} `{category}`.{did_you_mean(category, Category.values)}")
    return category


def alerts_of(dataset: Dataset) -> list[Alert]:
    """Its alerts in the order of the categories."""
    by_category = {alert.category: alert for alert in Alert.objects.filter(dataset=dataset)}
    return [by_category[category] for category in Category.values if category in by_category]


def _escalate_if_louder(alert: Alert, before: Severity, *, now: datetime) -> None:
    """What is open and matters more than it did is told as worse."""
    after = alert.setting.severity
    if after.rank <= before.rank:
        return
    open_ones = Incident.objects.select_for_update(of=("self",)).filter(
        dataset=alert.dataset_id, category=alert.category, resolved_at=None, reported=False
    )
    for incident in open_ones.select_related("dataset__team"):
        escalate.escalate(incident, why=f"its severity is {after} now, it was {before}", now=now)
