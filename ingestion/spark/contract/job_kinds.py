"""The kinds of job, by name: which there are, which read a source, which write no row, and which share their table with others."""

from __future__ import annotations

KINDS = (
    "bootstrap",
    "incremental",
    "backfill",
    "delete",
    "replay",
    "cluster",
    "set_position",
    "drop",
    "verify_index",
    "rebuild_index",
    "drop_index",
    "lineage",
    "replicate",
)
"""All of them; `ingestion.spark.jobs` has the code of each."""
READ_ONLY_KINDS = ("verify_index", "lineage")
"""The kinds that write no row. `verify_index` writes entries of its index where it is to put them right, and holds the permit then."""
KEYLESS_KINDS = ("rebuild_index", "drop_index", "set_position", "replicate")
"""The kinds that write, and look no key up: whatever state the index is in is no matter to them."""
READING_KINDS = ("bootstrap", "incremental", "backfill")
"""The kinds of job that read a source."""
EXCLUSIVE_KINDS = ("bootstrap", "drop")
"""The kinds that take the place of the whole table: each runs alone. All other kinds share a table, and hold the permit to write only while they write."""
