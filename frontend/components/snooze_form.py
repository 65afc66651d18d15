"""What ends a snooze, as forms say it."""

from __future__ import annotations

from datetime import datetime, tzinfo

from django.http import QueryDict
from django.utils.timezone import get_current_timezone, get_current_timezone_name, make_aware

from frontend.ui import words
from frontend.ui.form_actions import parse_local_time
from frontend.ui.viewer_zone import UTC
from frontend.ui.whole_numbers import parse_whole_number
from incidents.domain.incident.snooze_ends import HOUR, next_morning
from incidents.record.snooze import Snooze


def parse_snooze(posted: QueryDict, ends: str, *, zone: tzinfo, now: datetime) -> Snooze:
    """`ends` says which of its ends was chosen: `hour`, `morning` (of `zone`), `worse`, `failures`, else a time. Raises Refused for what is no time."""
    if ends == "hour":
        return Snooze(now + HOUR)
    if ends == "morning":
        return Snooze(next_morning(now, zone))
    if ends == "worse":
        return Snooze(until_worse=True)
    if ends == "failures":
        return Snooze(failures=parse_whole_number(posted.get("failures", "")) or 0)
    return Snooze(parse_local_time(posted.get("until", ""), make_aware))


def morning_zone(dataset_zone: tzinfo) -> tzinfo:
    """The viewer's zone; where nothing is known of it, the dataset's."""
    return dataset_zone if get_current_timezone_name() == UTC else get_current_timezone()


def snooze_text(snooze: Snooze, *, now: datetime) -> str:
    """`until 08:00`, in the viewer's zone."""
    if snooze.until is None or snooze.until_worse or snooze.failures is not None:
        return str(snooze)
    return f"until {words.clock(snooze.until, zone=get_current_timezone(), now=now)}"
