"""What entry points take the implementation of: the clock, the task queue. Nothing else imports it."""

from __future__ import annotations

from lakehub import clock as clock  # every process reads its time from here
from lakehub.processes.celery_app import app as celery  # whoever changes something may wake the workers

__all__ = ["celery", "clock"]
