"""A copy whose position in the changelog was set forward lacks changes: it is incomplete until it is loaded again."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from ingestion.lake import findings
from ingestion.models import Capture
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.interval import EVERYTHING


def note_skipped(copy: DatasetCopy, skipped: int, instant: str, *, now: datetime) -> None:
    """The position of the copy was set forward by the commit `instant`: what lies between is missing until it is loaded again."""
    with transaction.atomic():
        capture = Capture.objects.select_for_update(of=("self",)).filter(feed__dataset=copy.dataset_id).first()
        if capture is not None and copy.pk not in capture.incomplete_copies:
            capture.incomplete_copies = [*capture.incomplete_copies, copy.pk]
            capture.save(update_fields=["incomplete_copies"])
        why = (
            f"About {skipped:,} changes were left out, because the position in the changelog was set forward. They are missing here. "
            "Bootstrap the copy with `replace`."
        )
        findings.raise_finding(copy, findings.CHANGES_SKIPPED, EVERYTHING, why, {"commit": instant}, now=now)
