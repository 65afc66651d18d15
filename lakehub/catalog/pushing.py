"""Metadata changed: its tests follow at once."""

from __future__ import annotations

from django.conf import settings

from lakehub.waking import wake


def metadata_changed() -> None:
    """Call it inside the transaction of the change."""
    wake(settings.LAKEHUB_TASK_ON_METADATA_CHANGE)
