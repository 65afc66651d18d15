"""What bench.index hands to ImportTsv and to our writer of HFiles, the same entries; and the batches that its writers bring."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from bench.indexing.batches import NEW_NOTE, batch
from bench.indexing.entries import entries, key, pieces, read_tsv, some_entries, write_hfile, write_tsv
from ingestion.index.hfile.reader import read_summary


def test_a_text_of_entries_in_no_order_is_read_in_the_order_of_their_rows(tmp_path: Path) -> None:
    made = entries(0, 500)
    write_tsv(made, tmp_path / "entries.tsv")
    lines = (tmp_path / "entries.tsv").read_text().splitlines()
    assert lines != sorted(lines)
    assert read_tsv(tmp_path / "entries.tsv").to_pylist() == made.to_pylist()


def test_pieces_hold_each_entry_once_and_make_files_that_do_not_overlap(tmp_path: Path) -> None:
    written = [write_hfile(entries(*piece), tmp_path / str(piece[0])) for piece in pieces(1000, 3)]
    assert sum(each.rows for each in written) == 1000
    assert all(each.last < later.first for each, later in pairwise(written))
    with (tmp_path / "0").open("rb") as source:
        summary = read_summary(source)
    assert (summary.first, summary.cells) == (key(0).encode(), 3 * written[0].rows)


def test_entries_that_are_put_are_those_of_the_files() -> None:
    put, columns = some_entries(10, 12), entries(10, 12).to_pydict()
    assert list(put) == [key(10), key(11)]
    assert [entry.partition.encode() for entry in put.values()] == columns["p"]
    assert [entry.file_id.encode() for entry in put.values()] == columns["f"]


def test_a_fifth_of_a_batch_is_new_and_no_row_is_new_twice() -> None:
    """Days are those of the table, and of clustered batches its last ones."""
    days = [f"2026-01-{day:02}" for day in range(1, 11)]
    first = batch(1_000, 50, days=10, spread=True, number=1, last_days=2, new_before=0)
    later = batch(1_000, 50, days=10, spread=False, number=2, last_days=2, new_before=10)
    new = [[order.id for order in orders if order.note == NEW_NOTE] for orders in (first, later)]
    assert new == [[*range(1_000, 1_010)], [*range(1_010, 1_020)]]
    assert [len({order.id for order in orders}) for orders in (first, later)] == [50, 50]
    assert all(order.id < 1_000 for orders in (first, later) for order in orders if order.note != NEW_NOTE)
    assert {order.day for order in first if order.note == NEW_NOTE} == {*days}
    assert {order.day for order in later} == {*days[-2:]}
    assert ({order.amount for order in first}, {order.amount for order in later}) == ({1.5}, {2.5})
