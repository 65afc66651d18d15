"""What accounts asks of the apps above it, bound in settings (`LAKEHUB_PORTS`)."""

from __future__ import annotations

from typing import Protocol, cast

from django.conf import settings

from lakehub.kernel.registry import Registry


class DataCenters(Protocol):
    """The names of all data centers."""

    def __call__(self) -> list[str]: ...


def data_centers() -> list[str]:
    port = Registry[object]("port", settings.LAKEHUB_PORTS).get("accounts.DataCenters")
    return cast("DataCenters", port)()
