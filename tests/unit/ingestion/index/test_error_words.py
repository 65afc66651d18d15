"""What people are shown of HBase's errors has no record key."""

from __future__ import annotations

import pytest

from ingestion.index.error_words import class_of, in_words

HBASE = "org.apache.hadoop.hbase"
REGION = "lakehub-dc1-7,ann@example.com,1700000000000.0123456789abcdef0123456789abcdef."


@pytest.mark.parametrize(
    ("errors", "shown"),
    [
        ([f"{HBASE}.NotServingRegionException: {REGION} is not online on host,16020,1"], "NotServingRegionException"),
        (
            [
                f"{HBASE}.client.RetriesExhaustedException: row 'ann@example.com' on table 'x' at region={REGION}",
                f"{HBASE}.RegionTooBusyException: Over memstore limit, regionName={REGION}",
            ],
            "RetriesExhaustedException because of RegionTooBusyException",
        ),
        (
            [
                "java.net.SocketTimeoutException: callTimeout=1: row 'ann@example.com'",
                "java.net.ConnectException: refused\n\tat",
            ],
            "SocketTimeoutException because of java.net.ConnectException: refused",
        ),
        ([f"{HBASE}.NamespaceNotFoundException: no\0where"], f"{HBASE}.NamespaceNotFoundException: nowhere"),
        (["ann@example.com is not there"], "an error without a class"),
        (["java.io.FileNotFoundException: " + "x" * 400], "java.io.FileNotFoundException: " + "x" * 269),
    ],
)
def test_only_what_has_no_key_is_shown_whole(errors: list[str], shown: str) -> None:
    assert in_words(errors) == shown


def test_a_class_is_what_stands_before_the_message() -> None:
    """A key may have the name of one."""
    assert (
        class_of(f"{HBASE}.NotServingRegionException: t,TableNotFoundException: x,1.a.") == "NotServingRegionException"
    )
