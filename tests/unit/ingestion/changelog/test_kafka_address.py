"""The URL of a changelog in Kafka: what it may say, and that no error shows its password."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from ingestion.changelog import ChangelogConfig, ChangelogError
from ingestion.changelog.kafka.address import THE_CLUSTERS_OWN, KafkaAddress, read_address


def test_hosts_are_enough() -> None:
    assert read_address("kafka://a:9092,[::1]:9093,c") == KafkaAddress(
        "a:9092,[::1]:9093,c", "", 1, THE_CLUSTERS_OWN, 30, {"security.protocol": "plaintext"}
    )


def test_options_say_the_rest() -> None:
    address = read_address("kafka://a:1/lake-1/?partitions=4&replicas=3&timeout=5&security=ssl")
    assert address == KafkaAddress("a:1", "lake-1", 4, 3, 5, {"security.protocol": "ssl"})


def test_a_password_goes_over_an_encrypted_connection_unless_it_is_asked_otherwise() -> None:
    login = {"sasl.username": "me", "sasl.password": "p@ss/?", "sasl.mechanism": "SCRAM-SHA-512"}
    url = "kafka://me:p%40ss%2F%3F@a:1,b:2"
    assert read_address(url).login == login | {"security.protocol": "sasl_ssl"}
    plain = read_address(f"{url}?security=sasl_plaintext&mechanism=PLAIN").login
    assert plain == login | {"security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN"}


def test_certificates_are_a_file(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").touch()
    address = read_address(f"kafka://a:1?security=ssl&ca={tmp_path}/ca.pem")
    assert address.login["ssl.ca.location"] == f"{tmp_path}/ca.pem"


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("segments://a:1", "does not begin with kafka://"),
        ("kafka://", "Broker 1 .* is not a host with a port"),
        ("kafka://a:1,b:c", "Broker 2 .* is not a host with a port"),
        ("kafka://a:1/a_b", r"the prefix 'a_b'. Use up to 100 letters, digits and hyphens"),
        ("kafka://a:1/a.b", "the prefix 'a.b'"),
        ("kafka://a:1?partition=2", "the option 'partition'. Did you mean `partitions`"),
        ("kafka://a:1?partitions=0", "partitions='0'. Write a whole number from 1 to 10,000"),
        ("kafka://a:1?replicas=", "replicas=''. Write a whole number from 1 to 100"),
        ("kafka://a:1?timeout=2.5", "timeout='2.5'. Write a whole number from 1 to 300"),
        ("kafka://a:1?security=tls", "security='tls'"),
        ("kafka://a:1?security=sasl_ssl", "security=sasl_ssl, which logs in, and no user"),
        ("kafka://me:secret@a:1?security=ssl", "security=ssl, which does not log in, and a user"),
        ("kafka://me:secret@a:1?mechanism=SCRAM-SHA-255", "Did you mean `SCRAM-SHA-256`"),
        ("kafka://me@a:1", "a user without a password"),
        ("kafka://:secret@a:1", "a user without a password, or the reverse"),
        ("kafka://a:1?security=ssl&ca=/none.pem", "ca='/none.pem'. Name a file of certificates"),
        ("kafka://a:1?ca=/etc/hosts", "ca='/etc/hosts'.* together with security=ssl"),
    ],
)
def test_what_is_wrong_is_named_with_what_to_write(url: str, reason: str) -> None:
    with pytest.raises(ChangelogError, match=reason):
        read_address(url)


@pytest.mark.parametrize(
    "password", ["secret/", "secret?", "secret#", "secret?x=", "x?secret", "x?secret=1", "x/secret", "[secret"]
)
@pytest.mark.parametrize("rest", ["@a:1", "@a:1?partitions=x", "@", ":9092", ""])
def test_no_error_shows_a_password(password: str, rest: str) -> None:
    with pytest.raises(ChangelogError) as raised:
        read_address(f"kafka://me:{password}{rest}")
    assert "secret" not in str(raised.value)


def test_no_representation_shows_a_password() -> None:
    url = "kafka://me:secret@a:1"
    assert "secret" not in repr((ChangelogConfig(url, 1.0, lambda: datetime.now(UTC)), read_address(url)))
