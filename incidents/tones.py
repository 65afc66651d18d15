"""What a failure is worth now: the alert of its dataset and category, or the template where none is made yet."""

from __future__ import annotations

from incidents.domain import alerting
from incidents.domain.alerting import Template, Tone
from incidents.domain.routing import Matter
from incidents.models import Alert
from lakehub.catalog.models import Dataset
from quality.domain.tiers import TIERS, BadOverride, slas_of


def tone_of(dataset: Dataset, category: str) -> Tone:
    made = Alert.objects.filter(dataset=dataset, category=category).first()
    return made.tone if made is not None else Tone(template_of(dataset, category).severity)


def template_of(dataset: Dataset, category: str) -> Template:
    """By the tier and its urgency; overrides that cannot be read do not count."""
    try:
        slas = slas_of(dataset.tier, dataset.overrides, freshness=dataset.freshness_sla)
    except BadOverride:
        slas = TIERS[dataset.tier]
    return alerting.template(dataset.tier, slas.severity, category)


def matter_of(dataset: Dataset, category: str, tone: Tone) -> Matter:
    return Matter(dataset.tier, category, tone.severity)
