"""A server that takes nothing but TLS is tapped, and one whose certificate does not fit is not: by name, and never without TLS instead."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ingestion.capture.binlog.events import BinlogError
from ingestion.capture.binlog.stream import BinlogStream
from ingestion.captures.servers import server_of
from ingestion.models import Finding
from ingestion.sources import SourceError
from ingestion.sources.mysql.server import MysqlServer
from ingestion.tapping.replica_address import replica_address
from tests.services.captured_shop import KEY, CapturedShop, captured_shop
from tests.services.own_mariadb import OwnMariaDB, own_mariadb

pytestmark = pytest.mark.django_db(transaction=True)

ACCOUNT = """CREATE USER IF NOT EXISTS lakehub_tap@'127.0.0.1' IDENTIFIED BY 's3cret' REQUIRE SSL;
GRANT SELECT, REPLICATION SLAVE, BINLOG MONITOR ON *.* TO lakehub_tap@'127.0.0.1';
"""
OTHER_HOST = "does not have the name localhost"


def openssl(folder: Path, command: str) -> None:
    subprocess.run(["openssl", *command.split()], cwd=folder, check=True, capture_output=True)


def authority(folder: Path, name: str) -> None:
    openssl(folder, f"req -x509 -newkey rsa:2048 -nodes -keyout {name}.key -out {name}.pem -days 2 -subj /CN={name}")


def certificate(folder: Path, name: str, host: str) -> None:
    """By the authority `ca`."""
    (folder / "names").write_text(f"subjectAltName=DNS:{host}\n")
    openssl(folder, f"req -newkey rsa:2048 -nodes -keyout {name}.key -out {name}.csr -subj /CN={host}")
    signed = f"-CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out {name}.pem"
    openssl(folder, f"x509 -req -in {name}.csr {signed}")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    authority(folder, "ca")
    authority(folder, "stranger")
    certificate(folder, "localhost", "localhost")
    certificate(folder, "elsewhere", "db.elsewhere.example")
    return folder


@pytest.fixture(scope="module")
def server(mariadb_url: str, certificates: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnMariaDB]:
    """`mariadb_url`: where there is one, another can be started."""
    show(certificates, "localhost")
    options = [
        "--require-secure-transport=1",
        f"--ssl-cert={certificates}/shown.pem",
        f"--ssl-key={certificates}/shown.key",
    ]
    with own_mariadb(tmp_path_factory.mktemp("mariadb") / "tls", 91, *options, statements=ACCOUNT) as started:
        yield started


def show(certificates: Path, name: str) -> None:
    """What a server that reads its certificate (again) has from now on."""
    for kind in ("pem", "key"):
        shutil.copy(certificates / f"{name}.{kind}", certificates / f"shown.{kind}")


@pytest.fixture
def shop(server: OwnMariaDB, tmp_path: Path, settings: Any) -> Iterator[CapturedShop]:
    settings.LAKEHUB_CHANGELOG_URL = (tmp_path / "log").as_uri()
    with captured_shop(server.url, "lakehub_tls", tmp_path) as captured:
        captured.url = f"mysql://lakehub_tap:s3cret@localhost:{server.port}/lakehub_tls"
        yield captured


def test_a_server_that_takes_nothing_but_tls_is_tapped_and_read(shop: CapturedShop, certificates: Path) -> None:
    shop.url += f"?ssl_ca={certificates}/ca.pem"
    trips = shop.dataset("trips")
    tap = shop.tap()
    shop.step_until(tap, lambda: shop.is_captured(trips))
    shop.execute("INSERT INTO trips VALUES (1, 1)", "UPDATE trips SET n = 2")
    shop.take(tap)
    assert (shop.rows(trips), shop.row.error) == ({(1,): {"id": 1, "n": 2}}, "")
    with MysqlServer(shop.url).opened() as opened:
        assert opened.connection.exec_driver_sql("SHOW STATUS LIKE 'Ssl_version'").one()[1].startswith("TLSv1")


@pytest.mark.parametrize(
    ("trusted", "shown", "words"),
    [
        ("stranger", "localhost", "stranger.pem, which `ssl_ca` names, must have the certificate of the authority"),
        ("ca", "elsewhere", OTHER_HOST),
        ("missing", "localhost", "missing.pem, which `ssl_ca` names, cannot be read: No such file"),
        ("localhost.key", "localhost", "which `ssl_ca` names, has no certificate"),
    ],
)
def test_a_certificate_that_does_not_fit_is_refused_in_words_and_nothing_is_read(
    shop: CapturedShop, server: OwnMariaDB, certificates: Path, trusted: str, shown: str, words: str
) -> None:
    file = certificates / (trusted if trusted.endswith(".key") else f"{trusted}.pem")
    shop.url += f"?ssl_ca={file}"
    trips = shop.dataset("trips")
    show(certificates, shown)
    server.execute("FLUSH SSL")
    try:
        assert shop.tap().step() > 0
        reasons = (shop.row.error, reading_of(shop.url), binlog_of(shop.url))
    finally:
        show(certificates, "localhost")
        server.execute("FLUSH SSL")
    assert words in reasons[0]
    assert words in reasons[1]
    assert "TLS handshake failed" in reasons[2]
    assert f"{file}, which `ssl_ca` names" in reasons[2]
    assert "s3cret" not in str(reasons)
    assert not shop.is_captured(trips)
    assert Finding.objects.count() == 0  # nothing is lost: it goes on once that is mended


def test_a_server_that_offers_no_tls_is_not_spoken_to_without(mariadb_url: str, certificates: Path) -> None:
    """An account that needs none would be let in."""
    url = f"{mariadb_url}/mysql?ssl_ca={certificates}/ca.pem"
    assert "offers no TLS, which `ssl_ca` asks for" in reading_of(url)
    assert "server does not support TLS" in binlog_of(url)


def reading_of(url: str) -> str:
    """Why the rows of a table are not read."""
    with pytest.raises(SourceError) as refused, MysqlServer(url).opened():
        pass
    return str(refused.value)


def binlog_of(url: str) -> str:
    """Why a replica is not served."""
    stream = BinlogStream(replica_address(url, server_of(url), instance_key=KEY), "", lambda *_: False)
    try:
        with pytest.raises(BinlogError) as refused:
            stream.open()
    finally:
        stream.close()
    return str(refused.value)
