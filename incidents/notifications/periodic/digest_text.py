"""The text of a digest: its subject and one part for each message."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from django.conf import settings

from incidents.models import Message, Route
from incidents.record import texts

MAX_LISTED = 100
"""Incidents in one digest; the link at its end leads to all of them."""


def digest_subject(route: Route, listed: Sequence[Message]) -> str:
    incidents = {message.incident_id: message.incident for message in listed}
    ended = sum(incident.resolved_at is not None for incident in incidents.values())
    summary = f"{len(incidents)} {'incident' if len(incidents) == 1 else 'incidents'}, {ended} of them resolved"
    return f"[digest] {route.team.name}: {summary}"


def digest_body(listed: Sequence[Message]) -> str:
    """What is still open first, each incident with what happened to it and when."""
    by_incident: dict[int, list[Message]] = defaultdict(list)
    for message in listed:
        by_incident[message.incident_id].append(message)
    groups = sorted(
        by_incident.values(), key=lambda group: (_is_resolved(group), group[0].incident.dataset.tier, group[0].pk)
    )
    more = len(groups) - MAX_LISTED
    parts = [
        *map(_incident_lines, groups[:MAX_LISTED]),
        *([f"and {more} more"] if more > 0 else []),
        f"All incidents: {settings.LAKEHUB_BASE_URL}/incidents",
    ]
    return "\n\n".join(parts)


def _incident_lines(group: Sequence[Message]) -> str:
    incident = group[0].incident
    happened = ", ".join(_occasion_lines(group))
    state = f"State: {incident.get_state_display()}"
    return f"#{incident.pk} {incident.title}\n{happened}\n{state}\n{texts.incident_url(incident)}"


def _occasion_lines(group: Iterable[Message]) -> list[str]:
    return [f"{message.occasion} {message.created_at:%Y-%m-%d %H:%M} UTC" for message in group]


def _is_resolved(group: Sequence[Message]) -> bool:
    return group[0].incident.resolved_at is not None
