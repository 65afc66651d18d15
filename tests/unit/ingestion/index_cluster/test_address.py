"""The address of a cluster is read as it is written, and what is wrong with it is said without its password."""

from __future__ import annotations

import pytest

from ingestion.domain.index_cluster.address import HostPort, UnusableAddress, read_address

ADDRESS = "hbase://Thrift-1:9091?quorum=zk1,[::1]:2182&staging=hdfs://nn:8020/hfiles/"


def test_an_address_is_read_with_what_is_left_out() -> None:
    address = read_address(ADDRESS)
    assert address.thrift == HostPort("thrift-1", 9091)
    assert (address.quorum, address.staging) == (
        (HostPort("zk1", 2181), HostPort("::1", 2182)),
        "hdfs://nn:8020/hfiles",
    )
    assert address.znode == "/hbase"
    assert address.hosts == ("thrift-1", "zk1", "::1", "nn")
    plain = read_address("hbase://h?quorum=zk&staging=file:///stage&znode=/hbase-2")
    assert (plain.thrift, plain.znode, plain.hosts) == (HostPort("h", 9090), "/hbase-2", ("h", "zk"))
    azure = read_address("hbase://h?quorum=zk&staging=abfss://files@lake.example.org/stage")
    assert (azure.staging, azure.hosts) == ("abfss://files@lake.example.org/stage", ("h", "zk", "lake.example.org"))


def test_one_without_a_thrift_server_has_hbases_own_client() -> None:
    address = read_address("hbase://?quorum=zk&staging=hdfs://nn/hfiles")
    assert (address.thrift, address.hosts) == (None, ("zk", "nn"))
    assert str(address) == "hbase://?quorum=zk:2181&staging=hdfs://nn/hfiles"
    assert read_address(str(address)) == address


def test_it_is_shown_with_its_ports() -> None:
    shown = str(read_address(ADDRESS))
    assert shown == "hbase://thrift-1:9091?quorum=zk1:2181,[::1]:2182&staging=hdfs://nn:8020/hfiles"
    assert str(read_address(shown)) == shown


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("", "does not begin with hbase://"),
        ("http://h?quorum=z&staging=hdfs:///f", "does not begin with hbase://"),
        ("hbase://[::1?quorum=z&staging=hdfs:///f", "does not parse"),
        ("hbase://u:hush/x@h?quorum=z&staging=hdfs:///f", "asks for none. Leave them out"),
        ("hbase://u:hush?x@h?quorum=z&staging=hdfs:///f", "asks for none. Leave them out"),
        ("hbase://u:hush#x@h?quorum=z&staging=hdfs:///f", "asks for none. Leave them out"),
        ("hbase://u:hush@h?quorum=z&staging=hdfs:///f", "asks for none. Leave them out"),
        ("hbase://h/x?quorum=z&staging=hdfs:///f", "has a path or a #"),
        ("hbase://:9090?quorum=z&staging=hdfs:///f", "The host is not a host with a port"),
        ("hbase://h:0?quorum=z&staging=hdfs:///f", "The host is not a host with a port"),
        ("hbase://h:99999?quorum=z&staging=hdfs:///f", "The host is not a host with a port"),
        ("hbase://h?quorum=z&staging=file:///a%2520b", "without spaces, wildcards and escapes"),
        ("hbase://h?quorum=z&staging=file:///a%20b", "without spaces, wildcards and escapes"),
        ("hbase://h?quorum=z&staging=hdfs:///f*", "without spaces, wildcards and escapes"),
        ("hbase://h?quorum=z,,y&staging=hdfs:///f", "ZooKeeper 2 of `quorum` is not a host"),
        ("hbase://h?quorum=z:no&staging=hdfs:///f", "ZooKeeper 1 of `quorum` is not a host"),
        ("hbase://h", "lacks quorum and staging"),
        ("hbase://h?quorum=z&staging=", "lacks staging"),
        ("hbase://h?quorum=z&quorum=y&staging=hdfs:///f", "names an option twice"),
        ("hbase://h?quorun=z&hush=1&staging=hdfs:///f", "has an unknown option"),
        ("hbase://h?quorun=z&staging=hdfs:///f", r"Did you mean .quorum.\?"),
        ("hbase://h?quorum=z&staging=/f", "`staging` is not the URI of a folder"),
        ("hbase://h?quorum=z&staging=ftp://x/f", "`staging` is not the URI of a folder"),
        ("hbase://h?quorum=z&staging=s3a:///f", "`staging` is not the URI of a folder"),
        ("hbase://h?quorum=z&staging=s3a://key:hush%40bucket/f", "`staging` is not the URI of a folder"),
        ("hbase://h?quorum=z&staging=hdfs:///f&znode=hbase", "`znode` is not a path"),
    ],
)
def test_what_is_wrong_is_said_without_what_may_be_a_password(url: str, why: str) -> None:
    with pytest.raises(UnusableAddress, match=why) as refused:
        read_address(url)
    assert "hush" not in str(refused.value)
