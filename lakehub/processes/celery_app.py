"""Celery is the wake-up only: what is due, who has claimed it and until when is in the database."""

from __future__ import annotations

import logging.config
import os
from typing import Any

from celery import Celery, signals
from django.conf import settings
from structlog.contextvars import bind_contextvars, unbind_contextvars

from lakehub.processes import file_broker

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lakehub.settings")

file_broker.register_transport()

app = Celery("lakehub")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@signals.setup_logging.connect
def _configure_logging(**_: Any) -> None:
    """As Django does; without this Celery would set the level and the handlers by itself."""
    logging.config.dictConfig(settings.LOGGING)


@signals.task_prerun.connect
def _bind_task(task_id: str, task: Any, **_: Any) -> None:
    bind_contextvars(task=task.name, task_id=task_id)


@signals.task_postrun.connect
def _unbind_task(**_: Any) -> None:
    unbind_contextvars("task", "task_id")
