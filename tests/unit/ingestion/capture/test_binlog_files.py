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
