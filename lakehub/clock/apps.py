from __future__ import annotations

from django.apps import AppConfig


class ClockConfig(AppConfig):
    name = "lakehub.clock"
    label = "clock"
