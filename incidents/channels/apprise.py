"""Every other service, by the URLs of the `apprise` library, in a child process that may reach the Internet and nothing else.

The library connects by itself, so that nobody here could choose the address. In the child an audit hook of Python sees
what each socket is about to do, and refuses it unless it names an address of the Internet; it refuses programs too.
Redirects are not followed. The address, which holds secrets, goes over the child's standard input; its answer comes over
a file descriptor that only it writes to, whatever a plug-in prints.
"""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from django.conf import settings

from incidents.channels import Channel, DeliveryError, Notification
from lakehub.kernel.addresses import is_public_ip
from lakehub.kernel.errors import Refused

TIMEOUT = 20
"""Seconds, with the start of the child; the library itself waits four for an answer. A message that takes longer is sent again."""
CHECK_TIMEOUT = 60
"""Of an address nobody asks again but the person who waits for the answer; the library's start is slow on a busy machine."""
SCHEME = re.compile(r"([a-z0-9]+)://[^\s\x00-\x1f]*", re.IGNORECASE)
DEDICATED_CHANNELS = {"mailto": "email", "mailtos": "email"}
"""What a channel here does better: with a thread, a status, a list of what was sent."""
LOCAL_SERVICES = ("blink1", "dbus", "gio", "glib", "gnome", "kde", "macosx", "qt", "syslog", "windows")
"""These act on the machine that Lakehub runs on, with no connection that could be seen."""
_ROOT = Path(__file__).resolve().parents[2]
_HARMLESS_SOCKET_EVENTS = (
    *("socket.__new__", "socket.bind", "socket.gethostname", "socket.getservbyname", "socket.getservbyport"),
    *("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo"),
)
"""These ask nobody but the resolver of names; whatever else a socket does goes to an address. urllib3 binds one to see
whether there is IPv6."""
_PROGRAM_EVENTS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty")


class Apprise(Channel):
    """`address`: a URL of apprise, such as `ntfys://topic` or `tgram://token/chat`."""

    def check(self, address: str) -> None:
        scheme = _scheme(address)
        if scheme in DEDICATED_CHANNELS:
            raise Refused(f"`{self.shown(address)}` is sent over the channel `{DEDICATED_CHANNELS[scheme]}`.")
        self._check_scheme(address)
        answer = _run_child({"do": "check", "address": address}, timeout=CHECK_TIMEOUT)
        if answer.get("is_permanent"):
            raise self._invalid_address(address)
        if "problem" in answer:
            raise Refused(
                f"`{self.shown(address)}` could not be checked: {answer['problem']}. That says nothing about the address: try again."
            )

    def shown(self, address: str) -> str:
        """What stands behind the service's name is as a rule its secret."""
        return f"{_scheme(address)}://…" if _scheme(address) else "…"

    def send(self, note: Notification, address: str, *, now: datetime) -> str:
        self._check_scheme(address)
        request = {"do": "send", "address": address, "title": " ".join(note.subject.split()), "body": note.body}
        answer = _run_child(request | {"private": settings.LAKEHUB_ALLOW_PRIVATE_WEBHOOKS})
        if "problem" in answer:
            raise DeliveryError(
                f"{self.shown(address)}: {answer['problem']}", is_permanent=bool(answer.get("is_permanent"))
            )
        return "sent"

    def _invalid_address(self, address: str) -> Refused:
        return Refused(
            f"`{self.shown(address)}` is no address that apprise {version('apprise')} understands: write service://what-it-needs, as its documentation says."
        )

    def _check_scheme(self, address: str) -> None:
        if not _scheme(address):
            raise self._invalid_address(address)
        if _scheme(address) in LOCAL_SERVICES:
            raise Refused(f"`{self.shown(address)}` would act on the machine that Lakehub runs on: name a service.")


def _scheme(address: str) -> str:
    match = SCHEME.fullmatch(address)
    return match.group(1).lower() if match else ""


def _run_child(request: dict[str, Any], *, timeout: float = TIMEOUT) -> dict[str, Any]:
    """Its answer; it is killed when its time is over."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", __name__],
            input=json.dumps(request).encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=timeout,
            check=False,
            cwd="/",
            env={"PYTHONPATH": str(_ROOT), "PATH": os.defpath, "LANG": "C.UTF-8", "TZ": "UTC"},
        )
    except subprocess.TimeoutExpired:
        return {"problem": f"it took longer than {timeout:g} s"}
    if done.returncode:
        return {"problem": f"it was stopped (exit code {done.returncode})"}
    return _parse_child_output(done.stdout)


def _parse_child_output(output: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(output)
    except ValueError:
        answer = None
    return answer if isinstance(answer, dict) else {"problem": "it was stopped before it had answered"}


# In the child


def main() -> None:
    answer = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a plug-in prints is no answer
    request = json.load(sys.stdin)
    refused_addresses: list[str] = []
    sys.addaudithook(
        lambda event, args: _audit_hook(event, args, refused_addresses, private=bool(request.get("private")))
    )
    with answer:
        json.dump(_handle_request(request, refused_addresses), answer)


def _handle_request(request: dict[str, Any], refused_addresses: list[str]) -> dict[str, Any]:
    """Adds to `refused_addresses` what was refused."""
    import apprise

    memory = apprise.PersistentStoreMode.MEMORY
    asset = apprise.AppriseAsset(plugin_paths=[], http_redirects=False, storage_mode=memory, allow_templates=False)
    service = apprise.Apprise.instantiate(request["address"], asset=asset, suppress_exceptions=True)
    if service is None or not service.enabled or type(service).__module__.rpartition(".")[2] in LOCAL_SERVICES:
        return {"problem": "it does not understand the address", "is_permanent": True}
    service.redirects = False  # whatever the address says
    if request["do"] == "check":
        return {}
    heard = _WarningCollector(logging.WARNING)
    logging.getLogger("apprise").addHandler(heard)
    try:
        sent = service.notify(body=request["body"], title=request["title"], body_format=apprise.NotifyFormat.TEXT)
    except OSError as error:  # some services let it pass
        sent, heard.said = False, [str(error)]
    if sent:
        return {}
    if refused_addresses:
        why = f"{refused_addresses[0]} is inside this network. LAKEHUB_ALLOW_PRIVATE_WEBHOOKS=1 allows that"
        return {"problem": why, "is_permanent": True}
    return {"problem": _redact(request["address"], "; ".join(heard.said[:1]) or "the service did not take it")[:300]}


class _WarningCollector(logging.Handler):
    """What a plug-in says goes wrong."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


def _redact(address: str, text: str) -> str:
    """What a plug-in says, without any part of the address that may be a secret."""
    for part in sorted(re.split(r"[/:@?&=,#]+", address), key=len, reverse=True):
        text = text.replace(part, "…") if len(part) > 5 else text
    return text


def _audit_hook(event: str, args: tuple[Any, ...], refused_addresses: list[str], *, private: bool) -> None:
    """Raises where the child is about to talk to this network, or to start a program."""
    if event in _PROGRAM_EVENTS:
        raise PermissionError(f"{event} is not for a channel")
    if private or not event.startswith("socket.") or event in _HARMLESS_SOCKET_EVENTS:
        return
    where = args[-1][0] if isinstance(args[-1], tuple) else args[-1]
    if where is not None and not _is_allowed(str(where)):  # None: it goes where the socket is connected to
        refused_addresses.append(str(where))
        raise PermissionError(f"{where} is inside this network")


def _is_allowed(where: str) -> bool:
    """A name that nobody looked up yet, or the path of a local socket, is no address that could be checked."""
    try:
        return is_public_ip(where)
    except ValueError:
        return False


if __name__ == "__main__":
    main()
