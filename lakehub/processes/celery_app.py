"""Celery is the wake-up only: what is due, who has claimed it and until when is in the database."""

from __future__ import annotations

import os

from celery import Celery

from lakehub.processes import file_broker

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lakehub.settings")

file_broker.register_transport()

app = Celery("lakehub")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
