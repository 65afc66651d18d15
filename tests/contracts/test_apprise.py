"""The child in which apprise runs, with a library in its place that does what a plug-in might."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pytest_django import Settings

from incidents.channels import DeliveryError, apprise
from lakehub.kernel.errors import Refused
from tests.contracts.conftest import NOTE, NOW

LIBRARY = """
import os, socket, sys, types

NotifyFormat = types.SimpleNamespace(TEXT="text")
PersistentStoreMode = types.SimpleNamespace(MEMORY="memory")

def AppriseAsset(**_):
    return None

class Service:
    enabled = True
    def notify(self, *, body, **_):
        exec(body, globals())
        return True

class Apprise:
    @staticmethod
    def instantiate(address, **_):
        return Service()
"""


@pytest.fixture(autouse=True)
def library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: Settings) -> None:
    """What it does when it notifies is the body of the note."""
    settings.LAKEHUB_ALLOW_PRIVATE_WEBHOOKS = False
    (tmp_path / "apprise.py").write_text(LIBRARY)
    monkeypatch.setattr(apprise, "_ROOT", os.pathsep.join([str(tmp_path), str(apprise._ROOT)]))


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """It takes datagrams of this machine."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.bind(("127.0.0.1", 0))
        made.setblocking(False)
        yield made


def notify(body: str) -> str:
    return apprise.Apprise().send(replace(NOTE, body=body), "any://service", now=NOW)


@pytest.mark.parametrize(
    "way",
    [
        "s.connect(here)",
        "s.connect_ex(here)",
        "s.sendto(b'x', here)",
        "s.sendto(b'x', 0, here)",
        "s.sendmsg([b'x'], [], 0, here)",
    ],
)
def test_no_way_of_a_socket_leads_into_this_network(listener: socket.socket, way: str) -> None:
    body = f"here, s = {listener.getsockname()}, socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
    with pytest.raises(DeliveryError, match=r"127\.0\.0\.1 is inside this network") as caught:
        notify(body + way)
    assert caught.value.is_permanent
    with pytest.raises(BlockingIOError):
        listener.recv(1)


def test_a_socket_may_say_where_it_is() -> None:
    """As urllib3 does when it is imported, to see whether there is IPv6."""
    assert notify("socket.socket().bind(('127.0.0.1', 0))") == "sent"


def test_what_goes_to_where_a_socket_is_connected_is_not_looked_at_again() -> None:
    """One end of a pair has no address: as a connection to the Internet, which was looked at when it was made."""
    assert notify("near, far = socket.socketpair()\nnear.sendmsg([b'x'])\nassert far.recv(1) == b'x'") == "sent"


@pytest.mark.parametrize(
    "printed", ["print('{}')", "os.write(1, b'\\xff')", "sys.stdout.buffer.write(b'\\xff' * 9**6)"]
)
def test_what_a_plug_in_prints_is_no_answer(printed: str) -> None:
    assert notify(printed) == "sent"


@pytest.mark.parametrize("end", ["os._exit(0)", "os.closerange(3, 99); os._exit(0)", "os._exit(3)", "raise TypeError"])
def test_one_that_ends_without_an_answer_is_tried_again(end: str) -> None:
    with pytest.raises(DeliveryError, match="it was stopped") as caught:
        notify(end)
    assert not caught.value.is_permanent


def test_it_starts_no_program() -> None:
    with pytest.raises(DeliveryError, match=r"os\.system is not for a channel"):
        notify("os.system('true')")


def test_a_child_that_is_slow_or_dies_is_no_bad_address(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    channel = apprise.Apprise()
    channel.check("any://service")
    (tmp_path / "apprise.py").write_text("import os; os._exit(3)")
    with pytest.raises(
        Refused, match=r"could not be checked: it was stopped .*says nothing about the address: try again"
    ):
        channel.check("any://service")
    monkeypatch.setattr(apprise, "CHECK_TIMEOUT", 0.001)
    with pytest.raises(
        Refused, match=r"could not be checked: it took longer than 0\.001 s\. That says nothing about the"
    ):
        channel.check("any://service")


def test_what_the_library_does_not_understand_is_a_bad_address(tmp_path: Path) -> None:
    (tmp_path / "apprise.py").write_text(LIBRARY.replace("return Service()", "return None"))
    with pytest.raises(Refused, match="is no address that apprise"):
        apprise.Apprise().check("any://service")
