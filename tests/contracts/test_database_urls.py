"""What a database URL may say: drivers and options by a list, values by their type; what is refused is named with the remedy."""

from __future__ import annotations

import shutil
import socket
import ssl
import struct
import subprocess
from datetime import timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import sqlalchemy as sa

from lakehub.source_databases.drivers import DRIVERS
from lakehub.source_databases.engine import CannotOpen, open_database
from lakehub.source_databases.timeouts import Timeouts
from lakehub.source_databases.urls import UnusableUrl, read_url
from tests.polling import scaled

PG, MY = "postgresql+psycopg://u:p@db.example.org/x", "mysql+pymysql://u:p@db.example.org/x"


@pytest.mark.parametrize(
    ("url", "options"),
    [
        (f"{PG}?sslmode=verify-full&connect_timeout=3", {"sslmode": "verify-full", "connect_timeout": 3}),
        (f"{PG}?options=-csearch_path%3Dsales,public", {"options": "-csearch_path=sales,public"}),
        (f"{PG}?application_name=my%20job", {"application_name": "my job"}),
        (f"{MY}?charset=utf8mb4", {"charset": "utf8mb4"}),
        ("snowflake://u:p@account/x?role=READER", {"role": "READER"}),
    ],
)
def test_options_are_typed_values_and_no_longer_part_of_the_url(url: str, options: dict[str, object]) -> None:
    target = read_url(url)
    assert target.options == options
    assert not target.address.query


@pytest.mark.parametrize(
    "option",
    [
        "local_infile=1",
        "read_default_file=/etc/my.cnf",
        "init_command=SET+x",
        "ssl_key=/x",
        "conv=x",
        "charset=utf8&charset=utf8",
    ],
)
def test_an_option_that_is_not_listed_is_named_with_those_that_are(option: str) -> None:
    name = option.partition("=")[0]
    with pytest.raises(
        UnusableUrl, match=rf"`{name}` is not accepted, or said twice.*may say charset, connect_timeout, ssl_ca"
    ):
        read_url(f"{MY}?{option}")


@pytest.mark.parametrize(
    ("url", "remedy"),
    [
        (f"{PG}?connect_timeout=3600", "a whole number from 1 to 60"),
        (f"{PG}?connect_timeout={'9' * 5000}"[:1900], "a whole number from 1 to 60"),
        (f"{PG}?connect_timeout=٣", "a whole number from 1 to 60"),
        (f"{PG}?sslmode=off", "one of disable, allow"),
        (f"{PG}?options=-c statement_timeout=0", "other settings are the server's"),
        (f"{PG}?options=-csearch_path=x -c log_min_messages=debug5", "other settings are the server's"),
        (f"{PG}?client_encoding=utf8;x", "the name of an encoding"),
        (f"{PG}?sslrootcert=../x.pem", "the absolute path of a certificate"),
        (f"{MY}?ssl_ca=/etc/ssl/certs/../private/x.pem", "the absolute path of a certificate"),
        (f"{MY}?charset=utf8mb4%27", "the name of an encoding"),
    ],
)
def test_a_value_of_another_type_is_refused_and_said_what_it_is_to_be(url: str, remedy: str) -> None:
    with pytest.raises(UnusableUrl, match=f"another value than it may: write .*{remedy}"):
        read_url(url)


@pytest.mark.parametrize(
    ("url", "remedy"),
    [
        ("postgres+psycopg://u@h/x", "Did you mean `postgresql"),
        ("oracle://u@h/x", "lakehub.sql_drivers"),
        (PG.replace("db.example.org", "h" * 300), "does not name one host"),
        (f"{PG}?{'a' * 3000}", "at most 2,000 are read"),
        ("sqlite:////data/ops.db%00", "cannot be printed"),
        ("sqlite:////data/ops.db?uri=true", "may say nothing"),
        ("sqlite://u@h//data/ops.db", "no host, user or password"),
        (f"{MY}?ssl_ca=/etc/ssl/certs/db.pem&ssl_disabled=true", "both `ssl_ca` and `ssl_disabled=true`"),
    ],
)
def test_what_is_refused_says_what_to_write_instead(url: str, remedy: str) -> None:
    with pytest.raises(UnusableUrl, match=remedy):
        read_url(url)


def test_a_password_that_was_cut_by_the_question_mark_is_not_shown() -> None:
    for url in ("mysql+pymysql://u:pa?secret=1@h/x?local_infile=1", "mysql+pymysql://u:1?secret=x"):
        with pytest.raises(UnusableUrl) as refused:
            read_url(url)
        assert "secret" not in str(refused.value)


TIMEOUTS = Timeouts(timedelta(seconds=7), timedelta(seconds=70))


@pytest.mark.parametrize(
    "name", [name for name in DRIVERS if name not in ("hive", "bigquery") and "sqlite" not in name]
)
def test_every_driver_of_a_server_is_told_how_long_it_may_wait(name: str) -> None:
    arguments = DRIVERS.get(name).arguments(TIMEOUTS, {})
    seconds = {value for argument, value in arguments.items() if "timeout" in argument}
    assert 7 in seconds
    assert seconds <= {7, 70, 70_000}


def test_a_database_file_is_opened_as_it_is_named_and_read_only(tmp_path: Path) -> None:
    for folder in ("plain", "#", "a%2Fb", "a b", "é", "file:x"):
        file = tmp_path / folder / "ops.db"
        file.parent.mkdir()
        engine = sa.create_engine(sa.URL.create("sqlite", database=str(file)))
        with engine.begin() as connection:
            connection.exec_driver_sql("CREATE TABLE flights (id INTEGER)")
        engine.dispose()
        url = "sqlite:///" + str(file).replace("%", "%25")
        with open_database(url) as source:
            [opened] = [row[2] for row in source.connection.exec_driver_sql("PRAGMA database_list")]
            assert Path(opened).samefile(read_url(url).file)
            with pytest.raises(sa.exc.OperationalError, match="readonly"):
                source.connection.exec_driver_sql("INSERT INTO flights VALUES (1)")


class CuriousServer(Thread):
    """Speaks PostgreSQL as far as to ask for a password, and repeats it; over TLS it asks who the client is."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(daemon=True)
        self._tls, self._listening = tls, socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"
        self.password: bytes | None = None
        self.certificate: Any = None
        self.start()

    def run(self) -> None:
        with self._listening, self._listening.accept()[0] as client:
            client.recv(8)  # may we speak TLS?
            client.sendall(b"S" if self._tls else b"N")
            if self._tls:
                with self._tls.wrap_socket(client, server_side=True) as encrypted:
                    self.certificate = encrypted.getpeercert()
                return
            client.recv(1000)
            client.sendall(b"R" + struct.pack("!ii", 8, 3))
            self.password = client.recv(1000)[5:-1]
            message = b"SFATAL\0C28P01\0Mthe password was " + self.password + b"\0\0"
            client.sendall(b"E" + struct.pack("!i", len(message) + 4) + message)


def refusal(url: str) -> str:
    with pytest.raises(CannotOpen) as refused, open_database(url):
        pass
    return str(refused.value)


@pytest.mark.parametrize("password", ["hunter2", "hunter/2", "hunter%2F2", "hunter2#", "hunter2?x"])
def test_a_server_that_repeats_the_password_is_not_quoted_with_it(password: str) -> None:
    server = CuriousServer()
    assert "the password was ***" in refusal(f"postgresql+psycopg://u:{password}@{server.address}/db")
    assert b"hunter" in (server.password or b"")


def test_the_password_of_the_environment_is_told_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever makes a connection names the server."""
    monkeypatch.setenv("PGPASSWORD", "of the operator")
    server = CuriousServer()
    assert "no password supplied" in refusal(f"postgresql+psycopg://u@{server.address}/db")
    server.join(scaled(10))
    assert server.password in (None, b"")


@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl makes the certificate")
def test_the_certificate_of_the_account_is_shown_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / ".postgresql"
    own.mkdir()
    certificate, key = str(own / "postgresql.crt"), str(own / "postgresql.key")
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=operator", "-days", "2"]
    subprocess.run([*made, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    monkeypatch.setenv("HOME", str(tmp_path))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    tls.load_verify_locations(certificate)
    tls.maximum_version, tls.verify_mode = ssl.TLSVersion.TLSv1_2, ssl.CERT_OPTIONAL
    server = CuriousServer(tls)
    refusal(f"postgresql+psycopg://u:p@{server.address}/db?sslmode=require")
    server.join(scaled(10))
    assert not server.certificate
