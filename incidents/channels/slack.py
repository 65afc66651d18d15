"""Slack's incoming webhooks: blocks, with the whole as plain text for notifications. They take no thread: the link leads on."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from incidents.channels import Channel, Notification
from lakehub.http.outgoing.client import checked_url, post, status_if_accepted
from lakehub.kernel.addresses import host_of

MAX_HEADER_LENGTH, MAX_SECTION_LENGTH, MAX_FIELD_LENGTH = 150, 3000, 2000
"""The most that Slack takes of each."""
FIELDS = (
    ("Dataset", "dataset"),
    ("Category", "category"),
    ("Observed", "observed"),
    ("Data", "data"),
    ("Since", "since"),
    ("Likely cause", "cause"),
)


class Slack(Channel):
    """`address`: the URL of an incoming webhook, which is a secret."""

    def check(self, address: str) -> None:
        checked_url(address, "Slack webhook")

    def shown(self, address: str) -> str:
        return host_of(address)

    def send(self, note: Notification, address: str, *, now: datetime) -> str:
        body = json.dumps(message_payload(note)).encode()
        headers = {"Content-Type": "application/json; charset=utf-8"}
        answer = post(checked_url(address, "Slack webhook"), body, headers, now=now)
        # Slack says in one word what it does not like, such as `no_service`.
        return status_if_accepted(answer, self.shown(address), answer.text.strip()[:80])


def message_payload(note: Notification) -> dict[str, Any]:
    """`text` is what a notification shows; `blocks` what the channel shows."""
    blocks = [
        {"type": "header", "text": {"type": "plain_text", "text": _truncate(note.subject, MAX_HEADER_LENGTH)}},
        *_fact_blocks(note),
        {"type": "section", "text": {"type": "mrkdwn", "text": _truncate(escape(note.body), MAX_SECTION_LENGTH)}},
        *_link_blocks(note),
    ]
    return {"text": escape(note.subject), "blocks": blocks}


def escape(text: str) -> str:
    """So that what a person or a table says calls nobody (`<!channel>`) and links nowhere."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _fact_blocks(note: Notification) -> list[dict[str, Any]]:
    facts = [(label, str(note.facts.get(name) or "")) for label, name in FIELDS]
    fields = [
        {"type": "mrkdwn", "text": _truncate(f"*{label}*\n{escape(' '.join(text.split()))}", MAX_FIELD_LENGTH)}
        for label, text in facts
        if text
    ]
    return [{"type": "section", "fields": fields}] if fields else []


def _link_blocks(note: Notification) -> list[dict[str, Any]]:
    url = note.facts.get("url")
    if not url:
        return []
    button = {"type": "button", "text": {"type": "plain_text", "text": "Open"}, "url": str(url)}
    return [{"type": "actions", "elements": [button]}]


def _truncate(text: str, most: int) -> str:
    text = text or "-"
    return text if len(text) <= most else text[: most - 1] + "…"
