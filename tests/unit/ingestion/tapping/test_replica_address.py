"""How the tap connects as a replica: by the URL of a connection, with a number of its own."""

from __future__ import annotations

from mysql_event_stream import SslMode

from ingestion.capture.binlog.stream import ServerAddress
from ingestion.tapping.replica_address import replica_address, replica_id


def test_a_url_becomes_the_address_of_a_replica() -> None:
    url = "mysql://reader:p%40ss@db.example.org/ops?ssl_ca=/etc/ssl/certs/db.pem"
    address = replica_address(url, "db.example.org:3306", instance_key="k")
    number = replica_id("db.example.org:3306", instance_key="k")
    assert address == ServerAddress("db.example.org", 3306, "reader", "p@ss", number, "/etc/ssl/certs/db.pem")
    assert "p@ss" not in repr(address)


def test_with_a_file_of_certificates_the_server_is_verified_and_without_tls_only_where_that_is_said() -> None:
    modes = {
        options: replica_address(f"mysql://u@h/x{options}", "h:3306", instance_key="k").ssl_mode
        for options in ("", "?ssl_ca=/etc/ssl/certs/db.pem", "?ssl_disabled=true")
    }
    assert [*modes.values()] == [SslMode.PREFERRED, SslMode.VERIFY_IDENTITY, SslMode.DISABLED]


def test_a_replica_keeps_its_number_and_shares_it_with_no_other_instance_or_server() -> None:
    pairs = [(server, key) for server in ("a:3306", "a:3307", "b:3306") for key in ("k", "l")]
    numbers = [replica_id(server, instance_key=key) for server, key in pairs]
    assert numbers == [replica_id(server, instance_key=key) for server, key in pairs]
    assert len(set(numbers)) == len(pairs)
    assert all(2**31 <= number < 2**32 for number in numbers)
