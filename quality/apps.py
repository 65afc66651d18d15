from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import Error, register

from lakehub.kernel.suggest import did_you_mean


class QualityConfig(AppConfig):
    name = "quality"


@register
def engine_limits_name_engines(app_configs: Any, **_: Any) -> list[Error]:
    """A limit of an engine that does not exist would limit nothing."""
    from quality.engines import ENGINES

    return [
        Error(
            f"LAKEHUB_ENGINE_LIMITS limits {name!r}, which is no engine.{did_you_mean(name, ENGINES)}",
            id="quality.E001",
        )
        for name in settings.LAKEHUB_ENGINE_LIMITS
        if name not in ENGINES
    ]
