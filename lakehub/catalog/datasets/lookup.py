"""A dataset by its name, with the nearest name where there is none."""

from __future__ import annotations

from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import NotFound
from lakehub.kernel.suggest import did_you_mean


def live_dataset(name: str) -> Dataset:
    """The onboarded dataset with this name. Raises NotFound with the nearest name."""
    live = Dataset.objects.filter(offboarded_at=None)
    dataset = live.select_related("team").filter(name=name).first()
    if dataset is None:
        raise NotFound(f"There is no dataset `{name}`.{did_you_mean(name, live.values_list('name', flat=True)[:1000])}")
    return dataset


def any_dataset(name: str) -> Dataset:
    """The dataset with this name, off-boarded or not. Raises NotFound with the nearest name."""
    dataset = Dataset.objects.select_related("team").filter(name=name).first()
    return dataset if dataset is not None else live_dataset(name)
