"""What is posted to addresses that people give: signed, never into this network, tried again only where that may help."""

from __future__ import annotations

import ipaddress
import socket
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from pytest_django import Settings

from incidents.channels import CHANNELS, DeliveryError
from incidents.channels.webhook import SIGNATURE, TIMESTAMP, signature, signing_secret
from lakehub.http.outgoing import client as http_client
from lakehub.kernel.errors import Refused
from tests.contracts.conftest import NOTE, NOW
from tests.polling import scaled
from tests.webhook_receiver import HALF_A_HEADER, Receiver, dripping_server


def test_a_webhook_is_a_cloud_event(receiver: Receiver, settings: Settings) -> None:
    settings.LAKEHUB_BASE_URL = "https://lakehub.example"
    CHANNELS.get("webhook")().send(NOTE, receiver.url, now=NOW)
    ((headers, _),) = receiver.got
    (event,) = receiver.posted()
    assert headers["Content-Type"] == "application/cloudevents+json; charset=utf-8"
    data = event.pop("data")
    assert event == {
        "specversion": "1.0",
        "id": "message-7",
        "source": "https://lakehub.example",
        "type": "lakehub.incident.opened",
        "subject": "incident/214",
        "time": "2026-11-17T19:32:00+00:00",
        "datacontenttype": "application/json",
    }
    assert (data["id"], data["incident"]) == (7, NOTE.facts)


def test_a_receiver_can_check_who_sent_a_webhook_and_when(receiver: Receiver) -> None:
    CHANNELS.get("webhook")().send(NOTE, receiver.url, now=NOW)
    ((headers, body),) = receiver.got
    assert headers[SIGNATURE] == signature(signing_secret(receiver.url), headers[TIMESTAMP], body)
    assert headers[TIMESTAMP] == str(int(NOW.timestamp()))


def test_a_signature_covers_the_time_and_the_body() -> None:
    good = signature("key", "1795116720", b"{}")
    others = [signature("key", "1795116721", b"{}"), signature("key", "1795116720", b"{ }"), signature("k", "1", b"")]
    assert good not in others


@pytest.mark.parametrize(
    ("status", "is_permanent"),
    [(500, False), (503, False), (429, False), (408, False), (404, True), (410, True), (302, True), (307, True)],
)
def test_only_what_may_pass_is_tried_again(receiver: Receiver, status: int, is_permanent: bool) -> None:
    receiver.status = status
    with pytest.raises(DeliveryError, match=f"127.0.0.1 answered {status}") as caught:
        CHANNELS.get("webhook")().send(NOTE, receiver.url, now=NOW)
    assert (caught.value.is_permanent, caught.value.status) == (is_permanent, str(status))


@pytest.mark.parametrize("name", ["webhook", "slack", "apprise"])
def test_nobody_is_led_elsewhere(receiver: Receiver, name: str) -> None:
    receiver.status, receiver.headers = 307, {"Location": f"http://127.0.0.1:{receiver.port}/elsewhere"}
    address = f"json://127.0.0.1:{receiver.port}/hook?redirect=yes" if name == "apprise" else receiver.url
    with pytest.raises(DeliveryError, match="307"):
        CHANNELS.get(name)().send(NOTE, address, now=NOW)
    assert len(receiver.got) == 1


@pytest.mark.parametrize(
    ("header", "asked"),
    [
        ("120", timedelta(seconds=120)),
        ("Tue, 17 Nov 2026 19:40:00 GMT", timedelta(minutes=8)),
        ("Tue, 17 Nov 2026 19:00:00 GMT", timedelta()),
        ("999999999999999999999", None),
        ("8640000", http_client.MAX_RETRY_AFTER),
        ("soon", None),
        ("-5", None),
        ("", None),
    ],
)
def test_how_long_the_other_side_asks_to_wait_is_understood(header: str, asked: timedelta | None) -> None:
    assert http_client.parse_retry_after(header, now=NOW) == asked


@pytest.mark.parametrize("name", ["webhook", "slack", "pagerduty"])
def test_and_it_is_passed_on(receiver: Receiver, name: str) -> None:
    receiver.status, receiver.headers = 429, {"Retry-After": "90"}
    with pytest.raises(DeliveryError) as caught:
        CHANNELS.get(name)().send(NOTE, "0" * 32 if name == "pagerduty" else receiver.url, now=NOW)
    assert caught.value.retry_after == timedelta(seconds=90)


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "[::1]", "10.0.0.7", "169.254.169.254", "192.168.1.1", "[fd00::1]", "[64:ff9b::7f00:1]"],
)
@pytest.mark.parametrize("name", ["webhook", "slack"])
def test_nothing_reaches_into_this_network(receiver: Receiver, settings: Settings, name: str, host: str) -> None:
    settings.LAKEHUB_ALLOW_PRIVATE_WEBHOOKS = False
    with pytest.raises(DeliveryError, match=r"inside this network\. LAKEHUB_ALLOW_PRIVATE_WEBHOOKS=1 allows") as caught:
        CHANNELS.get(name)().send(NOTE, f"http://{host}:{receiver.port}/hook", now=NOW)
    assert caught.value.is_permanent
    assert receiver.got == []


@pytest.mark.parametrize(
    "address", ["json://127.0.0.1:{port}/x", "xml://localhost:{port}/x", "rsyslog://127.0.0.1:{port}"]
)
def test_nor_does_what_a_library_sends(receiver: Receiver, settings: Settings, address: str) -> None:
    settings.LAKEHUB_ALLOW_PRIVATE_WEBHOOKS = False
    with pytest.raises(DeliveryError, match=r"127\.0\.0\.1 is inside this network") as caught:
        CHANNELS.get("apprise")().send(NOTE, address.format(port=receiver.port), now=NOW)
    assert caught.value.is_permanent
    assert receiver.got == []


@pytest.mark.parametrize("address", ["syslog://", "dbus://", "GNOME://", " syslog://", "syslog://\n", "windows://x"])
def test_nor_does_it_act_on_this_machine(address: str) -> None:
    with pytest.raises(Refused, match=r"the machine that Lakehub runs on|understands"):
        CHANNELS.get("apprise")().send(NOTE, address, now=NOW)


def test_the_address_that_was_checked_is_the_one_connected_to(
    receiver: Receiver, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that answers with another address each time it is asked is asked once."""
    answers = iter(["93.184.216.34", "127.0.0.1"])
    connected: list[Any] = []

    def look_up(host: str, port: int, **_: object) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(answers), port))]

    def connect(address: tuple[str, int], **_: object) -> socket.socket:
        connected.append(address)
        raise ConnectionRefusedError("far away")

    settings.LAKEHUB_ALLOW_PRIVATE_WEBHOOKS = False
    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(DeliveryError, match="far away"):
        CHANNELS.get("webhook")().send(NOTE, f"http://rebind.example:{receiver.port}/hook", now=NOW)
    assert connected == [("93.184.216.34", receiver.port)]


def test_an_answer_that_never_ends_is_hung_up_on(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """It sends a letter now and then, so that no single wait is long."""
    settings.LAKEHUB_ALLOW_PRIVATE_WEBHOOKS = True
    monkeypatch.setattr(http_client, "TIMEOUT", 0.2)
    too_long = pytest.raises(DeliveryError, match=r"it took longer than 0\.2 s")
    with dripping_server(HALF_A_HEADER) as port, too_long as caught:
        CHANNELS.get("webhook")().send(NOTE, f"http://127.0.0.1:{port}/hook", now=NOW)
    assert not caught.value.is_permanent


def test_a_body_that_never_ends_is_not_waited_for_where_the_status_says_all(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.LAKEHUB_ALLOW_PRIVATE_WEBHOOKS = True
    monkeypatch.setattr(http_client, "TIMEOUT", scaled(2))
    with dripping_server(b"HTTP/1.1 202 Accepted\r\n\r\n") as port:
        assert CHANNELS.get("webhook")().send(NOTE, f"http://127.0.0.1:{port}/hook", now=NOW) == "202"


@pytest.mark.parametrize(
    "framing",
    ["", "Content-Length: 65000\r\n", "Transfer-Encoding: chunked\r\n\r\nfde8"],
    ids=["open", "length", "chunked"],
)
def test_a_refusal_that_never_ends_is_one_all_the_same(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, framing: str
) -> None:
    settings.LAKEHUB_ALLOW_PRIVATE_WEBHOOKS = True
    monkeypatch.setattr(http_client, "TIMEOUT", scaled(0.5))
    begin = f"HTTP/1.1 404 Not Found\r\n{framing}\r\n"
    with dripping_server(begin.encode()) as port, pytest.raises(DeliveryError, match=r"answered 404") as caught:
        CHANNELS.get("slack")().send(NOTE, f"http://127.0.0.1:{port}/hook", now=NOW)
    assert (caught.value.is_permanent, caught.value.status) == (True, "404")


def test_so_it_is_under_tls(settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The socket that was opened is not the one that TLS reads from."""
    settings.LAKEHUB_ALLOW_PRIVATE_WEBHOOKS = True
    monkeypatch.setattr(http_client, "TIMEOUT", 0.5)
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.load_cert_chain(certificate(tmp_path))
    trusting = ssl.create_default_context(cafile=str(tmp_path / "key-and-certificate.pem"))
    monkeypatch.setattr(ssl, "create_default_context", lambda: trusting)
    with dripping_server(HALF_A_HEADER, tls=ours) as port, pytest.raises(DeliveryError, match=r"was not reached"):
        CHANNELS.get("webhook")().send(NOTE, f"https://127.0.0.1:{port}/hook", now=NOW)


def certificate(folder: Path) -> Path:
    """A key and what it signed for this machine, in one file."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "here")])
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(1).not_valid_before(datetime.now(UTC) - timedelta(days=1))
    signed = made.not_valid_after(datetime.now(UTC) + timedelta(days=1)).add_extension(here, critical=False)
    plain = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file = folder / "key-and-certificate.pem"
    file.write_bytes(plain + signed.sign(key, SHA256()).public_bytes(Encoding.PEM))
    return file


@pytest.mark.parametrize("name", ["webhook", "slack"])
@pytest.mark.parametrize(
    "address",
    [
        "https://me:secret@example.org/hook",
        "https://",
        "https://example.org:99999/",
        "https://example.org/a\r\nX: 1",
        "x",
    ],
)
def test_an_address_that_is_no_url_is_refused(name: str, address: str) -> None:
    with pytest.raises(Refused):
        CHANNELS.get(name)().check(address)


def test_a_name_that_no_host_can_have_is_an_address_that_is_not_reached() -> None:
    url = http_client.checked_url(f"https://{'a' * 64}.example.com/", "webhook")
    with pytest.raises(DeliveryError, match=r"was not reached: "):
        http_client.post(url, b"", {}, now=NOW)
