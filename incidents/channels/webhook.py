"""A POST of JSON to a URL, signed, and never to this network's own addresses unless the operator allows it."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import ipaddress
import json
import socket
import ssl
from datetime import datetime
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from incidents.channels import CannotSend, Note
from lakehub.kernel.errors import Refused

TIMEOUT = 10
SIGNATURE = "X-Lakehub-Signature"
TIMESTAMP = "X-Lakehub-Timestamp"


def secret_for(address: str) -> str:
    """The key that notes to this URL are signed with; `manage.py webhook_secret` shows it."""
    return hmac.new(settings.SECRET_KEY.encode(), f"webhook:{address}".encode(), hashlib.sha256).hexdigest()


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """What a receiver computes to know that a note is ours and new."""
    return "sha256=" + hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


class Webhook:
    def check(self, address: str) -> None:
        url = urlsplit(address)
        if url.scheme not in ("https", "http") or not url.hostname:
            raise Refused(f"`{address}` is no webhook: write https://host/path.")
        if url.username or url.password:
            raise Refused("A webhook's URL holds no user and password: the signature says who sends.")

    def send(self, note: Note, address: str, *, now: datetime) -> None:
        self.check(address)
        url = urlsplit(address)
        body = json.dumps(
            {
                "id": note.id,
                "occasion": note.occasion,
                "subject": note.subject,
                "text": note.body,
                "incident": note.facts,
            }
        ).encode()
        timestamp = str(int(now.timestamp()))
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "Lakehub",
            TIMESTAMP: timestamp,
            SIGNATURE: signature(secret_for(address), timestamp, body),
        }
        status = _post(url, body, headers)
        if status >= 300:
            # 429 and what is the server's fault may pass; the rest will be the same next time.
            raise CannotSend(f"{url.hostname} answered {status}.", for_good=status < 500 and status != 429)


def _post(url: SplitResult, body: bytes, headers: dict[str, str]) -> int:
    host = url.hostname or ""
    port = url.port or (443 if url.scheme == "https" else 80)
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    try:
        connection = _connect(url.scheme, host, port)
        try:
            connection.request("POST", path, body, headers)
            return connection.getresponse().status
        finally:
            connection.close()
    except (OSError, http.client.HTTPException) as error:
        raise CannotSend(f"{host} was not reached: {error}") from error


def _connect(scheme: str, host: str, port: int) -> http.client.HTTPConnection:
    """A connection to the very address that was checked: a second look-up could answer with another one."""
    connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT)
    plain = socket.create_connection((_address_of(host, port), port), timeout=TIMEOUT)
    connection.sock = (
        ssl.create_default_context().wrap_socket(plain, server_hostname=host) if scheme == "https" else plain
    )
    return connection


def _address_of(host: str, port: int) -> str:
    """An address of `host` that we may talk to. Raises CannotSend."""
    found = [str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    for address in found:
        if settings.LAKEHUB_ALLOW_PRIVATE_WEBHOOKS or ipaddress.ip_address(address.partition("%")[0]).is_global:
            return address
    raise CannotSend(
        f"{host} is {', '.join(dict.fromkeys(found))}, inside this network. LAKEHUB_ALLOW_PRIVATE_WEBHOOKS=1 allows that.",
        for_good=True,
    )
