"""The alerts of a dataset, one a category, made from templates when its metadata changes; what a person set there stays."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Count, F, Q, QuerySet

from incidents import worsening
from incidents.domain import alerting
from incidents.domain.alerting import Severity
from incidents.models import Alert, Incident
from incidents.tones import template_of, tone_of
from lakehub.accounts import audit
from lakehub.catalog.models import Dataset
from lakehub.kernel.apart import apart
from lakehub.kernel.errors import NotFound, Refused
from lakehub.kernel.suggest import did_you_mean
from quality.models import Category


def generate_missing(*, now: datetime, limit: int = 50) -> int:
    """Makes the alerts of live datasets whose metadata is newer than theirs, or that lack one. The number of datasets."""
    waiting = list(_behind()[:limit])
    for dataset in waiting:
        with apart(f"Making the alerts of {dataset}"):
            generate(dataset, now=now)
    return len(waiting)


def _behind() -> QuerySet[Dataset]:
    current = Count("alerts", filter=Q(alerts__metadata_version=F("metadata_version")))
    live = Dataset.objects.filter(offboarded_at=None).annotate(current=current)
    return live.filter(current__lt=len(Category)).order_by("tier", "pk")


def generate(dataset: Dataset, *, now: datetime) -> list[Alert]:
    """Applies the templates for the present metadata. Running it again changes nothing."""
    with transaction.atomic():
        # Of two workers at once, one makes them.
        dataset = Dataset.objects.select_for_update(of=("self",)).select_related("team").get(pk=dataset.pk)
        before = {category: tone_of(dataset, category).severity for category in Category.values}
        made = [_make(dataset, category, now=now) for category in Category.values]
        for alert in made:
            _tell_if_louder(alert, before[alert.category], now=now)
    return made


def _make(dataset: Dataset, category: str, *, now: datetime) -> Alert:
    template = template_of(dataset, category)
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


def override(dataset: Dataset, category: str, wanted: Mapping[str, Any], *, actor: str, now: datetime) -> Alert:
    """Sets what counts in place of the template; nothing wanted: the template counts again. Raises Refused, NotFound."""
    checked_category(category)
    if problems := alerting.problems(wanted):
        raise Refused.because(problems)
    kept = {name: value for name, value in wanted.items() if value not in (None, "", False)}
    with transaction.atomic():
        alert = _locked(dataset, category, now=now)
        before = alert.tone.severity
        alert.override = kept
        alert.overridden_by, alert.overridden_at = (actor, now) if kept else ("", None)
        alert.save(update_fields=["override", "overridden_by", "overridden_at"])
        audit.record(actor, "set alert", f"dataset:{dataset.name}", now=now, category=category, **kept)
        _tell_if_louder(alert, before, now=now)
    return alert


def _locked(dataset: Dataset, category: str, *, now: datetime) -> Alert:
    if not Alert.objects.filter(dataset=dataset, category=category).exists():
        generate(dataset, now=now)
    rows = Alert.objects.select_for_update(of=("self",)).select_related("dataset__team")
    return rows.get(dataset=dataset, category=category)


def checked_category(category: str, name: str = "category") -> str:
    """Raises NotFound with the nearest one."""
    if category not in Category.values:
        raise NotFound(f"There is no {name} `{category}`.{did_you_mean(category, Category.values)}")
    return category


def of_dataset(dataset: Dataset) -> list[Alert]:
    """Its alerts in the order of the categories."""
    made = {alert.category: alert for alert in Alert.objects.filter(dataset=dataset)}
    return [made[category] for category in Category.values if category in made]


def _tell_if_louder(alert: Alert, before: Severity, *, now: datetime) -> None:
    """What is open and matters more than it did is told as worse."""
    after = alert.tone.severity
    if after.rank <= before.rank:
        return
    open_ones = Incident.objects.select_for_update(of=("self",)).filter(
        dataset=alert.dataset_id, category=alert.category, resolved_at=None, reported=False
    )
    for incident in open_ones.select_related("dataset__team"):
        worsening.tell(incident, why=f"its severity is {after} now, it was {before}", now=now)
