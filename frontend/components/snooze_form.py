"""What the form of a snooze says ends it, on the page of an incident and over the list alike."""

from __future__ import annotations

from django.http import QueryDict
from django.utils.timezone import make_aware

from frontend.ui.form_actions import parse_local_time
from frontend.ui.whole_numbers import parse_whole_number
from incidents.record.snooze import Snooze


def parse_snooze(posted: QueryDict) -> Snooze:
    """`ends` says which of its ends was chosen: `worse`, `failures`, else a time. Raises Refused for what is no time."""
    ends = posted.get("ends", "")
    if ends == "worse":
        return Snooze(until_worse=True)
    if ends == "failures":
        return Snooze(failures=parse_whole_number(posted.get("failures", "")) or 0)
    return Snooze(parse_local_time(posted.get("until", ""), make_aware))
