"""PagerDuty's Events API v2: one alert an incident, by its deduplication key; triggered, acknowledged and resolved with it."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from incidents.channels import Channel, Notification
from lakehub.http.outgoing.client import checked_url, post, status_if_accepted
from lakehub.kernel.errors import Refused

INTEGRATION_KEY = re.compile(r"[A-Za-z0-9]{32}")
MAX_SUMMARY_LENGTH = 1024
TRIGGER = ("trigger",)
ACTIONS_BY_OCCASION = {
    "acknowledged": ("acknowledge",),
    "released": ("resolve", "trigger"),  # one that is acknowledged notifies nobody, whatever triggers it again
    "resolved": ("resolve",),
    "rejected": ("resolve",),
}
SEVERITIES = {"critical": "critical", "high": "error", "medium": "warning", "low": "info"}
CLOSED_STATES = ("resolved", "rejected")


class PagerDuty(Channel):
    """`address`: the integration key of a service, which is a secret."""

    takes_digests = False

    def check(self, address: str) -> None:
        if not INTEGRATION_KEY.fullmatch(address):
            raise Refused(
                f"`{self.shown(address)}` is no integration key of PagerDuty: write the 32 letters and digits of an Events API v2 integration."
            )

    def shown(self, address: str) -> str:
        return f"{address[:4]}…"

    def send(self, note: Notification, address: str, *, now: datetime) -> str:
        self.check(address)
        events = [event_payload(note, address, action, now=now) for action in actions_for(note)]
        return " ".join(self._post(event, now) for event in events) or "nothing to say"

    def _post(self, event: dict[str, Any], now: datetime) -> str:
        url = checked_url(settings.LAKEHUB_PAGERDUTY_URL, "PagerDuty address")
        answer = post(url, json.dumps(event).encode(), {"Content-Type": "application/json"}, now=now)
        return status_if_accepted(answer, url.hostname or "", _api_errors(answer.text))


def actions_for(note: Notification) -> tuple[str, ...]:
    """A word about what is over raises no alert again, a list of incidents is none, and a trial is taken back at once."""
    if note.occasion == "test":
        return ("trigger", "resolve")
    if not note.thread:
        return ()
    actions = ACTIONS_BY_OCCASION.get(note.occasion, TRIGGER)
    return tuple(action for action in actions if action not in TRIGGER or note.facts.get("state") not in CLOSED_STATES)


def event_payload(note: Notification, key: str, action: str, *, now: datetime) -> dict[str, Any]:
    facts = note.facts
    dedup = f"lakehub:{urlsplit(settings.LAKEHUB_BASE_URL).netloc}:{note.thread or f'{note.kind}-{note.id}'}"
    event: dict[str, Any] = {"routing_key": key, "event_action": action, "dedup_key": dedup[:255]}
    if action != "trigger":
        return event
    url = facts.get("url")
    return event | {
        "payload": {
            "summary": (" ".join(note.subject.split()) or note.occasion)[:MAX_SUMMARY_LENGTH],
            "source": str(facts.get("dataset") or "lakehub"),
            "severity": SEVERITIES.get(str(facts.get("severity")), "error"),
            "timestamp": (note.written_at or now).isoformat(),
            "group": facts.get("team"),
            "class": facts.get("category"),
            "custom_details": {**facts, "text": note.body},
        },
        "client": "Lakehub",
        "client_url": settings.LAKEHUB_BASE_URL,
        "links": [{"href": url, "text": "The incident"}] if url else [],
    }


def _api_errors(text: str) -> str:
    """What the API says is wrong with the event; empty where it says nothing that can be understood."""
    try:
        answer = json.loads(text)
    except ValueError:
        return ""
    errors = answer.get("errors") if isinstance(answer, dict) else None
    return "; ".join(map(str, errors))[:200] if isinstance(errors, list) else ""
