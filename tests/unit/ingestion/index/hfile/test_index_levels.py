"""The index has as many levels as its size needs, and names the block in the middle."""

from __future__ import annotations

from itertools import pairwise

import pytest

from ingestion.index.hfile.writer import BlockSizes
from tests.unit.ingestion.index.hfile.slow_reader import SlowHFile
from tests.unit.ingestion.index.hfile.written_files import cells, index_rows, written

ENTRY_BYTES = 12 + 2 + 8 + 1 + 2 + 6 + 9
"""Address; key of a cell: length, row, length, family, `commit`, time and kind."""


@pytest.mark.parametrize(
    ("blocks", "entries_per_block", "levels", "root_entries"),
    [
        (1, 1000, 1, 1),
        (19, 20, 1, 19),
        (20, 20, 2, 1),
        (21, 20, 2, 2),
        (320, 20, 2, 16),
        (321, 20, 2, 17),
        (400, 20, 2, 20),
        (401, 20, 3, 2),
        (2000, 7, 4, 2),
    ],
)
def test_levels(blocks: int, entries_per_block: int, levels: int, root_entries: int) -> None:
    rows = index_rows(blocks)
    hfile = SlowHFile(written(rows, sizes=BlockSizes(data=1, index=ENTRY_BYTES * entries_per_block)))
    assert len(hfile.data_blocks) == blocks
    assert (hfile.levels, len(hfile.root)) == (levels, root_entries)
    assert hfile.cells == cells(rows)


def test_the_longest_keys_need_few_levels() -> None:
    rows = index_rows(600, key_bytes=32_767)
    hfile = SlowHFile(written(rows))
    assert hfile.levels == 3
    assert hfile.cells == cells(rows)


def test_leaves_and_chunks_of_the_filter_are_written_as_they_become_full() -> None:
    """So neither is kept to the end: the memory of a writer does not grow by the row."""
    hfile = SlowHFile(written(index_rows(3_000), sizes=BlockSizes(data=1, index=ENTRY_BYTES * 20, bloom_chunk=64)))
    kinds = [block.kind for block in hfile.blocks]
    for kind in (b"IDXLEAF2", b"BLMFBLK2"):
        places = [place for place, block in enumerate(kinds) if block == kind]
        gaps = [end - begin for begin, end in pairwise(places)]
        assert len(places) > 50
        assert max(gaps) < 2 * min(gaps[:-1]) + 5
