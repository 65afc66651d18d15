"""What the form of a snooze says ends it, on the page of an incident and over the list alike."""

from __future__ import annotations

from django.http import QueryDict
from django.utils.timezone import make_aware

from frontend.acting import instant
from frontend.numbers import whole
from incidents.snoozing import Snooze


def snooze_asked(said: QueryDict) -> Snooze:
    """`ends` says which of its ends was chosen: `worse`, `failures`, else a time. Raises Refused for what is no time."""
    ends = said.get("ends", "")
    if ends == "worse":
        return Snooze(until_worse=True)
    if ends == "failures":
        return Snooze(failures=whole(said.get("failures", "")) or 0)
    return Snooze(instant(said.get("until", ""), make_aware))
