"""A dataset's live test by its key."""

from __future__ import annotations

from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import NotFound
from lakehub.kernel.suggest import did_you_mean
from quality.models import QualityTest


def live_test(dataset: Dataset, key: str) -> QualityTest:
    """The live test with this key. Raises NotFound with the nearest."""
    live = dataset.tests.filter(retired_at=None).select_related("version")
    test = live.filter(key=key).first()
    if test is None:
        raise NotFound(f"{dataset.name} has no test `{key}`.{did_you_mean(key, live.values_list('key', flat=True))}")
    return test
