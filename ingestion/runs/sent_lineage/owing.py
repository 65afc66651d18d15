"""Which runs owe their lineage to the receiver that the operator has set."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings

from ingestion.spark.contract.job_kinds import READING_KINDS
from lakehub.catalog.models import DatasetCopy

MAX_AGE = timedelta(days=7)
"""Runs that ended before are not sent any more."""


def owes_lineage(copy: DatasetCopy, kind: str) -> bool:
    """Asked when the run is asked for. It is sent once the run has ended."""
    return bool(settings.LAKEHUB_OPENLINEAGE_URL) and kind in READING_KINDS and copy.dataset.is_modelled
