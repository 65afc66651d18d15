"""A body signed with a shared secret and the time: HMAC-SHA256 over `<timestamp>.<body>`, as our own webhooks are."""

from __future__ import annotations

import hashlib
import hmac
from datetime import UTC, datetime, timedelta

MAX_CLOCK_SKEW = timedelta(minutes=5)
"""So far may the sender's clock be from ours; what is older has been seen by somebody."""


class BadSignature(ValueError):
    """It was not signed with this secret, or not now. Says what to look at."""


def sign_body(secret: str, timestamp: str, body: bytes) -> str:
    """`sha256=...`; `timestamp` is in seconds since 1970, as text."""
    return "sha256=" + hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def verify_signature(secret: str, *, timestamp: str, body: bytes, signed: str, now: datetime) -> None:
    """Raises BadSignature."""
    if not hmac.compare_digest(sign_body(secret, timestamp, body).encode(), signed.encode()):
        raise BadSignature(
            "The signature is not that of this body: it is `sha256=` and the HMAC-SHA256 of `<timestamp>.<body>` in hex."
        )
    if not (timestamp.isascii() and timestamp.isdecimal() and len(timestamp) <= 11):
        raise BadSignature(f"`{timestamp}` is no timestamp: send the seconds since 1970.")
    sent_at = datetime.fromtimestamp(int(timestamp), UTC)
    if abs(now - sent_at) > MAX_CLOCK_SKEW:
        raise BadSignature(
            f"It was signed at {sent_at:%Y-%m-%d %H:%M:%S} UTC, and here it is {now:%Y-%m-%d %H:%M:%S} UTC: "
            f"more than {MAX_CLOCK_SKEW.seconds // 60} minutes apart. Sign it again, or set the clock."
        )
