"""The launcher of this process: one for its life, so that its Spark session is kept."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from django.conf import settings

from ingestion.launchers import LAUNCHERS, Launcher, LauncherConfig


def launcher_folder() -> Path:
    """Of specs, reports and logs."""
    return Path(settings.LAKEHUB_HOME) / "jobs"


@cache
def configured_launcher() -> Launcher:
    config = LauncherConfig(
        folder=launcher_folder(),
        master=settings.LAKEHUB_SPARK_MASTER,
        memory=settings.LAKEHUB_SPARK_MEMORY,
        java_home=settings.LAKEHUB_JAVA_HOME or None,
    )
    return LAUNCHERS.get(settings.LAKEHUB_LAUNCHER)(config)
