"""Plug-ins of installed packages that cannot be used are errors of `manage.py check`, and of whatever runs the checks at its start."""

from __future__ import annotations

from typing import Any

from django.core.checks import Error, register

from incidents.channels import CHANNELS
from ingestion.sources import SOURCES
from lakehub.catalog.storages import STORAGES
from quality.checks import CHECKS
from quality.engines import ENGINES


@register
def installed_plugins_can_be_used(app_configs: Any, **_: Any) -> list[Error]:
    registries = (STORAGES, SOURCES, ENGINES, CHECKS, CHANNELS)
    return [Error(problem, id="lakehub.E001") for registry in registries for problem in registry.problems()]
