"""Slack's incoming webhooks: blocks, with the whole as plain text for notifications. They take no thread: the link leads on."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from incidents.channels import Note
from incidents.messages.posting import accepted, checked, post
from lakehub.kernel.addresses import host_of

HEADER, SECTION, FIELD = 150, 3000, 2000
"""The most that Slack takes of each."""
FIELDS = (
    ("Dataset", "dataset"),
    ("Category", "category"),
    ("Observed", "observed"),
    ("Data", "data"),
    ("Since", "since"),
    ("Likely cause", "cause"),
)


class Slack:
    """`address`: the URL of an incoming webhook, which is a secret."""

    def check(self, address: str) -> None:
        checked(address, "Slack webhook")

    def shown(self, address: str) -> str:
        return host_of(address)

    def send(self, note: Note, address: str, *, now: datetime) -> str:
        body = json.dumps(message(note)).encode()
        headers = {"Content-Type": "application/json; charset=utf-8"}
        answer = post(checked(address, "Slack webhook"), body, headers, now=now)
        # Slack says in one word what it does not like, such as `no_service`.
        return accepted(answer, self.shown(address), answer.text.strip()[:80])


def message(note: Note) -> dict[str, Any]:
    """`text` is what a notification shows; `blocks` what the channel shows."""
    blocks = [
        {"type": "header", "text": {"type": "plain_text", "text": _cut(note.subject, HEADER)}},
        *_facts(note),
        {"type": "section", "text": {"type": "mrkdwn", "text": _cut(escaped(note.body), SECTION)}},
        *_link(note),
    ]
    return {"text": escaped(note.subject), "blocks": blocks}


def escaped(text: str) -> str:
    """So that what a person or a table says calls nobody (`<!channel>`) and links nowhere."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _facts(note: Note) -> list[dict[str, Any]]:
    said = [(label, str(note.facts.get(name) or "")) for label, name in FIELDS]
    fields = [
        {"type": "mrkdwn", "text": _cut(f"*{label}*\n{escaped(' '.join(text.split()))}", FIELD)}
        for label, text in said
        if text
    ]
    return [{"type": "section", "fields": fields}] if fields else []


def _link(note: Note) -> list[dict[str, Any]]:
    url = note.facts.get("url")
    if not url:
        return []
    button = {"type": "button", "text": {"type": "plain_text", "text": "Open"}, "url": str(url)}
    return [{"type": "actions", "elements": [button]}]


def _cut(text: str, most: int) -> str:
    text = text or "-"
    return text if len(text) <= most else text[: most - 1] + "…"
