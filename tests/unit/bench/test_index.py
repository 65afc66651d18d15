"""What bench.index hands to ImportTsv and to our writer of HFiles: the same entries."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

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
