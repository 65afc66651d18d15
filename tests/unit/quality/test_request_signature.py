"""A signed body is believed for five minutes, from who has the secret."""

from __future__ import annotations

import hashlib
import hmac
from datetime import UTC, datetime, timedelta

import pytest

from quality.domain.request_signature import MAX_CLOCK_SKEW, BadSignature, sign_body, verify_signature

NOW = datetime(2026, 11, 17, 19, 32, tzinfo=UTC)
BODY = b'{"dataset": "flights"}'


def at(instant: datetime) -> str:
    return str(int(instant.timestamp()))


def believed(
    *, timestamp: str = at(NOW), body: bytes = BODY, signed: str | None = None, now: datetime = NOW, secret: str = "s"
) -> bool:
    try:
        verify_signature(
            secret, timestamp=timestamp, body=body, signed=signed or sign_body("s", timestamp, body), now=now
        )
    except BadSignature:
        return False
    return True


def test_it_is_the_hmac_that_every_tool_can_compute() -> None:
    expected = hmac.new(b"s", b"1700000000." + BODY, hashlib.sha256).hexdigest()
    assert sign_body("s", "1700000000", BODY) == f"sha256={expected}"


def test_another_secret_body_or_time_is_not_believed() -> None:
    good = sign_body("s", at(NOW), BODY)
    assert believed(signed=good)
    assert not believed(signed=good, secret="t")
    assert not believed(signed=good, body=BODY + b" ")
    assert not believed(signed=good, timestamp=at(NOW + timedelta(seconds=1)))
    assert not believed(signed="sha256=ümlaut")


@pytest.mark.parametrize("away", [-MAX_CLOCK_SKEW - timedelta(seconds=1), MAX_CLOCK_SKEW + timedelta(seconds=1)])
def test_what_was_signed_long_ago_or_ahead_is_not_believed(away: timedelta) -> None:
    assert not believed(now=NOW + away)
    assert believed(now=NOW + away * 0.9)


@pytest.mark.parametrize("timestamp", ["", "soon", "-5", "1e9", "²", "9" * 40])
def test_what_is_no_timestamp_is_refused_even_if_signed(timestamp: str) -> None:
    with pytest.raises(BadSignature, match="no timestamp"):
        verify_signature("s", timestamp=timestamp, body=BODY, signed=sign_body("s", timestamp, BODY), now=NOW)
