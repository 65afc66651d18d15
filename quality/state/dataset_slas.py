"""The SLAs and the production calendar of a dataset: its tier's values with its own overrides."""

from __future__ import annotations

from lakehub.catalog.models import Dataset
from quality.domain.slas import CALENDAR_OVERRIDES, BadOverride, Slas, slas_for_tier
from quality.domain.timeliness.production_calendar import BadCalendar, ProductionCalendar, holidays_text, parse_calendar


def dataset_slas(dataset: Dataset) -> Slas:
    """The promises of the dataset: its tier's, with what it overrides. Raises BadOverride."""
    return slas_for_tier(dataset.tier, dataset.overrides, freshness=dataset.freshness_sla)


def slas_or_tier_defaults(dataset: Dataset) -> Slas:
    """Those of its tier where what it overrides cannot be read; its coverage says what is wrong."""
    try:
        return dataset_slas(dataset)
    except BadOverride:
        return slas_for_tier(dataset.tier, freshness=dataset.freshness_sla)


def production_calendar(dataset: Dataset) -> ProductionCalendar | None:
    """When the dataset is produced, where it says so; None: always. Raises BadOverride."""
    calendar, holidays = (holidays_text(dataset.overrides.get(name, "")) for name in CALENDAR_OVERRIDES)
    if not calendar and not holidays:
        return None
    try:
        return parse_calendar(calendar, holidays, dataset.zone)
    except BadCalendar as problem:
        raise BadOverride(str(problem)) from problem
