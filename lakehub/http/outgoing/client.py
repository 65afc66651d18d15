"""A POST to an address that a person gave: never into this network unless the operator allows it, never led elsewhere. One that the operator has set
in the configuration may be in this network.

The name is looked up once and the very address that was checked is connected to: a second look-up could answer with
another one. Redirects are answers like any other. Proxies of the environment are not used.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from threading import Timer
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from lakehub.kernel.addresses import is_public_ip
from lakehub.kernel.errors import Refused

TIMEOUT = 10
"""Seconds, from the look-up of the name to the last that is read."""
MAX_RESPONSE_BYTES = 64 * 1024
"""Of what an answer says to a refusal."""
MAX_RETRY_AFTER = timedelta(days=1)
RETRYABLE_STATUSES = (408, 425, 429)
"""What is the caller's fault and may be over next time; so is every fault of the server."""


class DeliveryError(Exception):
    """It did not arrive. `is_permanent`: trying again will not help; `retry_after`: how long the other side asked to wait."""

    def __init__(
        self, why: str, *, is_permanent: bool = False, status: str = "", retry_after: timedelta | None = None
    ) -> None:
        super().__init__(why)
        self.is_permanent = is_permanent
        self.status = status
        self.retry_after = retry_after


@dataclass(frozen=True)
class PostResponse:
    """`text`: the beginning of what it says to a refusal; empty for a success."""

    status: int
    text: str
    retry_after: timedelta | None

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


def checked_url(url: str, kind: str) -> SplitResult:
    """Raises Refused where nothing can be posted to `url`."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("https", "http") or not parts.hostname or not url.isascii() or _has_space(url):
        raise Refused(f"`{url}` is no {kind}: write https://host/path.")
    if parts.username or parts.password:
        raise Refused(f"The URL of a {kind} holds no user and password.")
    return parts


def _has_space(url: str) -> bool:
    return any(ord(letter) <= 32 or ord(letter) == 127 for letter in url)


def post(
    url: SplitResult, body: bytes, headers: dict[str, str], *, now: datetime, is_operators: bool = False
) -> PostResponse:
    """What the other side answered, whatever it is: its status counts, and nothing that comes after it is waited for but the reason of a refusal.

    `is_operators`: the address is one of the configuration. Raises DeliveryError where no status came within TIMEOUT."""
    host, deadline = url.hostname or "", time.monotonic() + TIMEOUT
    port = url.port or (443 if url.scheme == "https" else 80)
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    try:
        with _connection(url.scheme, host, port, deadline=deadline, is_operators=is_operators) as connection:
            connection.request("POST", path, body, {"User-Agent": "Lakehub", **headers})
            with connection.getresponse() as answer:
                _time_left(deadline)  # hung up on: what there is of its headers may be half of them
                retry_after = parse_retry_after(answer.headers.get("Retry-After", ""), now=now)
                response = PostResponse(answer.status, "", retry_after)
                return response if response.is_success else replace(response, text=_reason(answer))
    except (OSError, http.client.HTTPException, UnicodeError) as error:  # UnicodeError: no name of a host
        is_late = time.monotonic() >= deadline  # hung up on: the error is ours, and would name the other side
        why = _too_long() if is_late else error or type(error).__name__
        raise DeliveryError(f"{host} was not reached: {why}") from error


def _reason(answer: http.client.HTTPResponse) -> str:
    """As far as it comes in time."""
    try:
        return answer.read(MAX_RESPONSE_BYTES).decode(errors="replace")
    except http.client.IncompleteRead as cut_off:
        return cut_off.partial.decode(errors="replace")
    except (OSError, http.client.HTTPException):  # it broke in the middle of its reason: the status is known
        return ""


def status_if_accepted(answer: PostResponse, host: str, why: str = "") -> str:
    """The status as a word. Raises DeliveryError unless it is one of success."""
    status = str(answer.status)
    if answer.is_success:
        return status
    raise DeliveryError(
        f"{host} answered {status}{f': {why}' if why else ''}.",
        is_permanent=answer.status < 500 and answer.status not in RETRYABLE_STATUSES,
        status=status,
        retry_after=answer.retry_after,
    )


def parse_retry_after(text: str, *, now: datetime) -> timedelta | None:
    """`Retry-After`, seconds or a date, a day at most; None where it says nothing that can be understood."""
    try:
        delay = timedelta(seconds=int(text)) if text.strip().isdigit() else _http_date(text) - now
    except (ValueError, OverflowError):
        return None
    return min(max(delay, timedelta()), MAX_RETRY_AFTER)


def _http_date(text: str) -> datetime:
    at = parsedate_to_datetime(text)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


@contextmanager
def _connection(
    scheme: str, host: str, port: int, *, deadline: float, is_operators: bool
) -> Iterator[http.client.HTTPConnection]:
    """Closed at the deadline, of the monotonic clock, whatever is being said: a byte now and then would keep it open for ever."""
    connection = http.client.HTTPConnection(host, port)
    address = allowed_address(host, port, is_operators=is_operators)
    plain = socket.create_connection((address, port), timeout=_time_left(deadline))
    handle = plain.dup()  # TLS takes the socket over; what is done to its copy holds for both
    watch = Timer(max(0.0, deadline - time.monotonic()), _hang_up, (handle,))
    watch.daemon = True
    watch.start()
    try:
        connection.sock = plain
        if scheme == "https":
            connection.sock = ssl.create_default_context().wrap_socket(plain, server_hostname=host)
        yield connection
    finally:
        watch.cancel()
        connection.close()
        plain.close()
        handle.close()


def _time_left(deadline: float) -> float:
    """In seconds. Raises TimeoutError where it is over."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError(_too_long())
    return left


def _too_long() -> str:
    return f"it took longer than {TIMEOUT} s"


def _hang_up(handle: socket.socket) -> None:
    with suppress(OSError):  # the other side was faster
        handle.shutdown(socket.SHUT_RDWR)


def allowed_address(host: str, port: int, *, is_operators: bool = False) -> str:
    """An address of `host` that we may talk to. Raises DeliveryError."""
    addresses = [str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    for address in addresses:
        if is_operators or settings.LAKEHUB_ALLOW_PRIVATE_WEBHOOKS or is_public_ip(address):
            return address
    raise DeliveryError(
        f"{host} is {', '.join(dict.fromkeys(addresses))}, inside this network. LAKEHUB_ALLOW_PRIVATE_WEBHOOKS=1 allows that.",
        is_permanent=True,
    )
