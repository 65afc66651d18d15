"""What time it is. Entry points (views, tasks, commands) read it once and hand `now` on; nothing else does.

LAKEHUB_CLOCK=wall is the machine's time. LAKEHUB_CLOCK=shifted adds the offset in the database, so that a
demo can play hours in seconds and every process still agrees.
"""

from __future__ import annotations

from datetime import UTC, datetime

from django.conf import settings


def now() -> datetime:
    wall = datetime.now(UTC)
    if settings.LAKEHUB_CLOCK == "wall":
        return wall
    from lakehub.clock.models import ClockShift

    return wall + ClockShift.current()
