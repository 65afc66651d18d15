"""The changelog of this instance, as its settings name it."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings

from ingestion.changelog import CHANGELOGS, Changelog, ChangelogConfig
from lakehub import clock


def configured_changelog() -> Changelog:
    """Raises UnknownPlugin."""
    config = ChangelogConfig(settings.LAKEHUB_CHANGELOG_URL, retention_s(), clock.now)
    return CHANGELOGS.get(settings.LAKEHUB_CHANGELOG)(config)


def retention_s() -> float:
    return timedelta(days=settings.LAKEHUB_CHANGELOG_DAYS).total_seconds()


def producer_of(server: str) -> str:
    """The name under which the tap of a server (`host:port`) writes: who opens it goes on where the one before was."""
    return f"tap:{server}"
