"""A POST of a CloudEvent in structured JSON, signed so that its receiver knows who sent it, and when."""

from __future__ import annotations

import hashlib
import hmac
import json
from datetime import datetime

from django.conf import settings

from incidents.channels import Channel, Notification
from lakehub.http.outgoing.client import checked_url, post, status_if_accepted
from lakehub.kernel.addresses import host_of

SIGNATURE = "X-Lakehub-Signature"
TIMESTAMP = "X-Lakehub-Timestamp"
MEDIA_TYPE = "application/cloudevents+json; charset=utf-8"


def signing_secret(address: str) -> str:
    """The key that notes to this URL are signed with; `manage.py webhook_secret` shows it."""
    return hmac.new(settings.SECRET_KEY.encode(), f"webhook:{address}".encode(), hashlib.sha256).hexdigest()


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """What a receiver computes to know that a note is ours and new."""
    return "sha256=" + hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def cloud_event(note: Notification, *, now: datetime) -> dict[str, object]:
    """CloudEvents 1.0: `source` and `id` together are the same when a note comes twice."""
    return {
        "specversion": "1.0",
        "id": f"{note.kind}-{note.id}",
        "source": settings.LAKEHUB_BASE_URL,
        "type": f"lakehub.{note.thread.partition('-')[0] or note.kind}.{note.occasion}",
        **({"subject": note.thread.replace("-", "/")} if note.thread else {}),
        "time": (note.written_at or now).isoformat(),
        "datacontenttype": "application/json",
        "data": {
            "id": note.id,
            "occasion": note.occasion,
            "subject": note.subject,
            "text": note.body,
            "incident": note.facts,
        },
    }


class Webhook(Channel):
    def check(self, address: str) -> None:
        checked_url(address, "webhook")

    def shown(self, address: str) -> str:
        return host_of(address)

    def send(self, note: Notification, address: str, *, now: datetime) -> str:
        url = checked_url(address, "webhook")
        body = json.dumps(cloud_event(note, now=now)).encode()
        timestamp = str(int(now.timestamp()))
        headers = {
            "Content-Type": MEDIA_TYPE,
            TIMESTAMP: timestamp,
            SIGNATURE: signature(signing_secret(address), timestamp, body),
        }
        return status_if_accepted(post(url, body, headers, now=now), self.shown(address))
