"""Metadata changed: its tests follow at once."""

from __future__ import annotations

from django.conf import settings

from lakehub.processes.task_wakeup import wake_task


def wake_on_metadata_change() -> None:
    """Call it inside the transaction of the change."""
    wake_task(settings.LAKEHUB_TASK_ON_METADATA_CHANGE)
