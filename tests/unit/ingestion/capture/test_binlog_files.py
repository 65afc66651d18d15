"""From which places in a binlog a tap can go on."""

from __future__ import annotations

import pytest

from ingestion.capture.binlog_files import BinlogFiles, Place


@pytest.mark.parametrize(
    ("gtid", "place"),
    [
        ("", Place.PURGED),
        ("0-1-9", Place.PURGED),
        ("0-2-10", Place.NEXT_TO_GO),
        ("0-1-19", Place.NEXT_TO_GO),
        ("0-1-20", Place.KEPT),
        ("0-1-30", Place.KEPT),
        ("0-1-31", Place.UNKNOWN),
        ("7-1-15", Place.UNKNOWN),
    ],
)
def test_a_place_in_a_binlog_whose_beginning_was_purged(gtid: str, place: Place) -> None:
    assert BinlogFiles("0-1-10", "0-1-30", "0-1-20").place_of(gtid) is place


def test_the_only_file_is_not_removed() -> None:
    assert BinlogFiles("0-1-10", "0-1-30").place_of("0-1-10") is Place.KEPT
    assert BinlogFiles("", "0-1-30").place_of("") is Place.KEPT


def test_a_binlog_that_has_begun_anew_knows_no_place() -> None:
    assert BinlogFiles("", "").place_of("0-1-5") is Place.UNKNOWN
    assert BinlogFiles("", "").place_of("") is Place.KEPT


@pytest.mark.parametrize(
    ("gtid", "may"),
    [("0-1-29", True), ("0-1-30", True), ("0-1-31", False), ("0-2-40", True), ("0-3-1", False), ("1-1-30", False)],
)
def test_a_server_has_no_transaction_beyond_the_last_one_of_whoever_made_it(gtid: str, may: bool) -> None:
    assert BinlogFiles("", "0-2-40", written="0-1-30, 0-2-40").may_have(gtid) is may
