"""The SLAs and the production calendar of a dataset: its tier's values with its own overrides."""

from __future__ import annotations

from datetime import timedelta

from lakehub.catalog.models import Dataset
from quality.domain.slas import BadOverride, Slas, slas_for_tier
from quality.domain.timeliness.production_calendar import BadCalendar, ProductionCalendar, calendar_of_overrides


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
    try:
        return calendar_of_overrides(dataset.overrides, dataset.zone)
    except BadCalendar as problem:
        raise BadOverride(str(problem)) from problem


def production_calendar_or_none(dataset: Dataset) -> ProductionCalendar | None:
    """What cannot be read is reported where the tests are made; until it is mended every partition is expected."""
    try:
        return production_calendar(dataset)
    except BadOverride:
        return None


def lag_limit(dataset: Dataset) -> timedelta:
    """The port `ingestion.LagLimit`: what is fresh enough is close enough to its source."""
    return slas_or_tier_defaults(dataset).freshness
