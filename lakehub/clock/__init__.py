"""What time it is. Entry points (views, tasks, commands) read it once and hand `now` on; nothing else does.

LAKEHUB_CLOCK=wall is the machine's time. LAKEHUB_CLOCK=shifted adds the offset in the database, so that a
demo can play hours in seconds and every process still agrees.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.conf import settings


def now() -> datetime:
    return datetime.now(UTC) + ahead()


def ahead() -> timedelta:
    """How far it is ahead of the wall's; what others have timed by the wall is moved by as much."""
    if settings.LAKEHUB_CLOCK == "wall":
        return timedelta()
    from lakehub.clock.models import ClockShift

    return ClockShift.current()
