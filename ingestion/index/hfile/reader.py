"""What an HFile says of itself, ours or HBase's own: its range of keys, how many cells it has, and the root of its index. No data is read."""

from __future__ import annotations

from typing import NamedTuple

from ingestion.index.hfile.block_index import IndexEntry, parsed_root
from ingestion.index.hfile.blocks import FILE_INFO, ROOT_INDEX, Input, read_block
from ingestion.index.hfile.cells import row_of_cell_key
from ingestion.index.hfile.trailer import LAST_KEY, parsed_file_info, read_trailer
from ingestion.index.hfile.unreadable import UnreadableHFile


class HFileSummary(NamedTuple):
    """`first`, `last`: row keys. `root`: with one level, an entry for each data block, otherwise for each block of the index below the root."""

    first: bytes
    last: bytes
    cells: int
    levels: int
    root: tuple[IndexEntry, ...]


def read_summary(source: Input) -> HFileSummary:
    """Reads the trailer, the file information and the index's root, and verifies their checksums.

    Raises UnreadableHFile for what is no HFile of version 3, is damaged, compressed, encoded or encrypted, or has no cells.
    """
    trailer, end = read_trailer(source)
    info = parsed_file_info(read_block(source, trailer.file_info, FILE_INFO, end))
    root = tuple(parsed_root(read_block(source, trailer.load_on_open, ROOT_INDEX, end), trailer.root_entries))
    if not root or LAST_KEY not in info:
        raise UnreadableHFile("The file has no cells, so it has no range of keys.")
    # HBase shortens the keys in the index, but not the first.
    return HFileSummary(
        row_of_cell_key(root[0].first_key), row_of_cell_key(info[LAST_KEY]), trailer.cells, trailer.levels, root
    )
