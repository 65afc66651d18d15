"""Celery's entry point: `celery --app lakehub.celery worker`. The processes that send tasks import `lakehub.wiring` instead."""

from __future__ import annotations

from lakehub.instance import prepare_instance
from lakehub.processes.celery_app import app as app

# Celery reads the settings, which hold the keys, when it first needs one: after this.
prepare_instance()
