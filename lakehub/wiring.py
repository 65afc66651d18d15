"""The one place that chooses the implementation of a port. Only process entry points import it."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from django.conf import settings

from lakehub import clock as clock  # every process reads its time from here
from lakehub.celery import app as celery  # whoever changes something may wake the workers
from lakehub.kernel.registry import Registry

__all__ = ["celery", "clock", "input_gate"]

if TYPE_CHECKING:
    from ingestion.ports import InputGate


def input_gate() -> InputGate:
    """What an ingestion or ETL job asks before it reads its inputs."""
    return cast("InputGate", _ports().get("ingestion.InputGate"))


def _ports() -> Registry[object]:
    return Registry("port", settings.LAKEHUB_PORTS)
