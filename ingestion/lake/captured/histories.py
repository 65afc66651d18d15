"""Since when the history of a captured table is kept, as its newest commit says."""

from __future__ import annotations

from datetime import datetime

from ingestion.spark.tables.timeline import Timeline


def kept_since(uri: str) -> datetime | None:
    """None: there is no history yet. Raises DamagedTable and OSError."""
    timeline = Timeline(uri)
    runs = (commit.run for commit in timeline.newest_first()) if timeline.exists else iter(())
    began = next((run["began"] for run in runs if "began" in run), None)
    return None if began is None else datetime.fromisoformat(began)
