"""Which subjects have got a version since the process asked last: the copies of their datasets are looked at at once, however long their interval is.

One query of some rows, however many copies and versions there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from ingestion.models import SchemaVersion

ASK_EVERY_S = 10.0
_NEWEST = 100
"""Those that several register at once may become visible in another order than that of their numbers."""
_LOOKS_BACK = timedelta(minutes=10)
"""Of a process that has just begun: what came before that is seen by the looks that are due."""


class NewVersions:
    """`monotonic`: seconds of a clock that only grows."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic, self._asked_at, self._had_news = monotonic, float("-inf"), False
        self._known: set[int] | None = None

    def is_due(self, *, has_news: bool) -> bool:
        """`has_news`: others have written to the database. Once in some seconds at most."""
        self._had_news = self._had_news or has_news
        at = self._monotonic()
        if not self._had_news or at - self._asked_at < ASK_EVERY_S:
            return False
        self._had_news, self._asked_at = False, at
        return True

    def subjects(self, *, now: datetime) -> set[str]:
        """Their names, each version once."""
        newest = SchemaVersion.objects.order_by("-pk").values_list("pk", "subject__name", "registered_at")[:_NEWEST]
        versions = {pk: (name, registered_at) for pk, name, registered_at in newest}
        known = self._known if self._known is not None else _before(versions, now - _LOOKS_BACK)
        self._known = {*versions}
        return {name for pk, (name, _) in versions.items() if pk not in known}


def _before(versions: Mapping[int, tuple[str, datetime]], time: datetime) -> set[int]:
    return {pk for pk, (_, registered_at) in versions.items() if registered_at < time}
