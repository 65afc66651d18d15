"""What is shown of a URL holds no secret."""

from __future__ import annotations

import re

import pytest

from lakehub.kernel.addresses import host_of, host_pattern, is_listed_host, is_public_ip, network_of, redacted_url


@pytest.mark.parametrize(
    ("url", "seen"),
    [
        ("postgresql://u:hunter2@db:5432/x", "postgresql://u:***@db:5432/x"),
        ("mysql://db/x?user=u&password=hunter2", "mysql://db/x?…"),
        ("sqlite:////data/ops.db", "sqlite:////data/ops.db"),
        ("https://u@host/#hunter2", "https://u@host/"),
        ("postgresql+psycopg://u:hun/ter2@127.0.0.1:1/x", "postgresql+psycopg://…"),
        ("postgresql://u:hun#ter2@h/x", "postgresql://…"),
        ("postgresql://u:hun?ter2@h/x", "postgresql://…"),
        ("postgresql:///u:hunter2@h/x", "postgresql://…"),
        ("postgresql:u:hunter2@h/x", "postgresql://…"),
        ("postgresql://u:hun@h/ter2@h/x", "postgresql://…"),
        ("http://[hunter2", "this URL (which does not parse)"),
        ("hunter2", "this URL (which has no scheme)"),
    ],
)
def test_a_url_is_shown_without_its_secrets(url: str, seen: str) -> None:
    assert redacted_url(url) == seen
    assert not re.search("hun|ter2", redacted_url(url))


def test_of_a_webhook_only_the_host_is_told() -> None:
    assert host_of("https://hooks.example.com/services/T0/B0/hunter2") == "hooks.example.com"
    assert host_of("https://host:99999/") == "host"


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1%eth0",
        "fd00::1",
        "ff02::1",
        "::ffff:10.0.0.1",
        "64:ff9b::a00:1",
        "2002:a00:1::",
    ],
)
def test_an_address_of_this_network_is_seen_through_every_wrapping(address: str) -> None:
    assert not is_public_ip(address)


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1::1", "64:ff9b::5db8:d822", "2002:5db8:d822::"])
def test_an_address_of_the_internet_is_one(address: str) -> None:
    assert is_public_ip(address)


LISTED = [
    host_pattern(text) for text in ("DB.example.com.", "*.ops.example.com", "10.1.0.0/16", "192.0.2.7", "2001:db8::/32")
]


@pytest.mark.parametrize(
    "host",
    ["db.example.com", "Db.Example.com.", "a.ops.example.com", "a.b.ops.example.com", "10.1.255.1", "192.0.2.7", "::ffff:10.1.0.1",
     "2001:db8::1"],
)  # fmt: skip
def test_a_host_is_listed_by_name_below_a_name_by_address_or_network(host: str) -> None:
    assert is_listed_host(host, LISTED)


@pytest.mark.parametrize(
    "host",
    ["", ".", "example.com", "xdb.example.com", "db.example.com.evil.org", "ops.example.com", "evilops.example.com", "10.2.0.1",
     "10.1", "167837697", "0x0a010001", "010.1.0.1", "192.0.2.70", "2001:db9::1", "db.example.com:5432"],
)  # fmt: skip
def test_another_host_is_not_listed_however_it_is_written(host: str) -> None:
    assert not is_listed_host(host, LISTED)


@pytest.mark.parametrize(
    "text",
    ["", "*", "*.", "a b", "db:5432", "10.1.0.1/16", "10.1", "http://db/", "*.*.x", "a..b", "[::1]", "ä.example.com"],
)
def test_what_is_no_host_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        host_pattern(text)


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:0:7::42", "2001:db8:0:7::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("unknown", "unknown"),
    ],
)
def test_a_client_is_told_from_others_as_far_as_can_be(address: str, network: str) -> None:
    assert network_of(address) == network
