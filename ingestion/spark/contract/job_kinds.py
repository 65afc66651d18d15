"""The kinds of job, by name: which there are, which read a source, and which write nothing."""

from __future__ import annotations

KINDS = ("bootstrap", "incremental", "backfill", "delete", "drop", "lineage")
"""All of them; `ingestion.spark.jobs` has the code of each."""
READ_ONLY_KINDS = ("lineage",)
"""The kinds that write nothing, and so need no fence around their table."""
READING_KINDS = ("bootstrap", "incremental", "backfill")
"""The kinds of job that read a source."""
