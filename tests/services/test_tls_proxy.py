"""Behind a proxy on another host that ends TLS: the browser is not redirected for ever, and strangers are not believed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

from lakehub.demo.instance import free_address
from lakehub.setup.artifacts import PROJECT_ROOT
from tests.polling import scaled, wait_until

PROXY = "127.0.0.2"
"""Loopback too, and another host as far as the server can tell."""


@contextmanager
def served(folder: Path, **settings: str) -> Iterator[str]:
    address, log = free_address(), folder / "log"
    own = {name: value for name, value in os.environ.items() if not name.startswith(("LAKEHUB_", "DJANGO_"))}
    environ = own | {"LAKEHUB_HOME": str(folder), "LAKEHUB_WEB_WORKERS": "1", "LAKEHUB_HTTPS": "1"} | settings
    command = [sys.executable, "manage.py", "up", "web", "--no-migrate", "--bind", address]
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, cwd=PROJECT_ROOT, env=environ, stdout=out, stderr=out, start_new_session=True
        )
    try:
        wait_until(lambda: is_up(address), within_s=60, otherwise=lambda: log.read_text(errors="replace")[-2000:])
        yield address
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(scaled(60))


def is_up(address: str) -> bool:
    try:
        return bool(ask(address, "http").status)
    except OSError:
        return False


def ask(address: str, scheme: str, path: str = "/sign-in") -> HTTPResponse:
    """As the proxy asks for a browser that came by `scheme`."""
    host, _, port = address.partition(":")
    connection = HTTPConnection(host, int(port), timeout=scaled(10), source_address=(PROXY, 0))
    headers = {"Host": "localhost", "X-Forwarded-For": "203.0.113.7", "X-Forwarded-Proto": scheme}
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    response.read()
    connection.close()
    return response


def test_a_proxy_on_another_host_says_that_the_browser_came_by_https(tmp_path: Path) -> None:
    with served(tmp_path, LAKEHUB_PROXIES="1") as address:
        page, plain = ask(address, "https"), ask(address, "http")
        api, plain_api = ask(address, "https", "/api/v1/tiers"), ask(address, "http", "/api/v1/tiers")
    assert page.status == 200
    assert re.fullmatch(r"__Host-csrftoken=\w+; .*Path=/; SameSite=Lax; Secure", page.headers["Set-Cookie"])
    assert page.headers["Strict-Transport-Security"] == "max-age=31536000; includeSubDomains"
    assert (plain.status, plain.headers["Location"]) == (301, "https://localhost/sign-in")
    assert api.status == 401
    assert (plain_api.status, "Location" in plain_api.headers) == (403, False)


def test_without_a_proxy_nobody_can_claim_https(tmp_path: Path) -> None:
    with served(tmp_path) as address:
        assert ask(address, "https").status == 301
