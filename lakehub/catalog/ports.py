"""What the catalog asks of the apps above it, bound in settings (`LAKEHUB_PORTS`).

The use cases look it up themselves, so that nothing is written past it whoever calls: the API, a form, a command.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, cast

from django.conf import settings

from lakehub.kernel.registry import Registry


class OverridesCheck(Protocol):
    """Why these overrides of a dataset cannot be read, each with its name, its value and what would do; empty: they can."""

    def __call__(self, overrides: Mapping[str, object], *, tier: int, zone: str) -> list[str]: ...


def overrides_check() -> OverridesCheck:
    return cast("OverridesCheck", Registry[object]("port", settings.LAKEHUB_PORTS).get("catalog.OverridesCheck"))
