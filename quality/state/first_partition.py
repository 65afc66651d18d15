"""The first partition of a copy that a test can have an answer for."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.interval import BEGINNING
from lakehub.kernel.partitions import Grain
from quality.domain.evaluation.lookback_window import first_answerable_start, required_history
from quality.domain.parsed import parsed
from quality.models import QualityTest, QualityTestVersion


def first_tested_at(test: QualityTest, copy: DatasetCopy) -> datetime:
    """Where the first partition of the copy begins that the test can have an answer for."""
    assert test.version is not None
    since, dataset = copy.monitored_from or BEGINNING, copy.dataset
    if test.version.cadence is not None:
        return since
    return first_tested_for(test.version.flattened, since, dataset.partition_grain, dataset.partition_tz)


@lru_cache(maxsize=8192)
def first_tested_for(flattened: str, since: datetime, grain: Grain, tz: str) -> datetime:
    """The same for a test of partitions by its expression, on what is monitored from `since` on."""
    if since == BEGINNING:
        return since
    return first_answerable_start(since, required_history(parsed(flattened), grain), grain, ZoneInfo(tz))


def is_looking_back(version: QualityTestVersion, dataset: Dataset) -> bool:
    return bool(required_history(parsed(version.flattened), dataset.partition_grain))
