"""The first partition of a copy that a test can have an answer for."""

from __future__ import annotations

from datetime import datetime

from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.interval import BEGINNING
from quality.domain.evaluation.lookback_window import required_history
from quality.domain.parsed import first_tested_for, parsed_or_blank
from quality.models import QualityTest, QualityTestVersion


def first_tested_at(test: QualityTest, copy: DatasetCopy) -> datetime:
    """Where the first partition of the copy begins that the test can have an answer for."""
    assert test.version is not None
    since, dataset = copy.monitored_from or BEGINNING, copy.dataset
    if test.version.cadence is not None:
        return since
    return first_tested_for(test.version.flattened, since, dataset.partition_grain, dataset.partition_tz)


def is_looking_back(version: QualityTestVersion, dataset: Dataset) -> bool:
    return bool(required_history(parsed_or_blank(version.flattened), dataset.partition_grain))
