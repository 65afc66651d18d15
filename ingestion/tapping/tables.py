"""A look at the tables of a plan before its session begins: which cannot be captured, and what those are that begin with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ingestion.capture.tap.captured_cells import CapturedCells
from ingestion.capture.tap.captured_rows import CapturedRows, captured_rows, known_table
from ingestion.capture.tap.captured_table import NotCaptured
from ingestion.capture.tap.known_tables import KnownTable
from ingestion.captures.servers import PlannedCapture, urls_of
from ingestion.schemas.captured_versions import VersionsByTopic
from ingestion.tapping import source_server
from ingestion.tapping.beginning import LOAD_AGAIN
from ingestion.tapping.source_server import ServerLook, TableLook


@dataclass(frozen=True)
class TablesSeen:
    """`stops`: by topic, why its table cannot be captured."""

    stops: dict[str, str] = field(default_factory=dict)
    known: dict[str, KnownTable] = field(default_factory=dict)
    """By topic, of those that begin: their loads read what is there now, and later rows may belong to a table with another key."""


def look_at_plan(plan: Sequence[PlannedCapture], look: ServerLook, versions: VersionsByTopic) -> TablesSeen:
    """Those that can be captured have a version of their schema after this, but for those that are captured already and whose account does not get
    through: what has become of their tables the log says."""
    tables = TablesSeen()
    for url in (each for each in urls_of(plan) if each not in look.silent):
        of_url = [each for each in plan if each.url == url]
        seen = source_server.look_at_tables(url, [(each.spec.database, each.spec.table) for each in of_url])
        for planned in of_url:
            spec = planned.spec
            try:
                rows = _rows_of(planned, seen[spec.database, spec.table], look, versions)
            except NotCaptured as problem:
                tables.stops[spec.topic] = f"{problem} {LOAD_AGAIN}"
                continue
            if rows is not None and not planned.is_live:
                tables.known[spec.topic] = known_table(rows)
    return tables


def _rows_of(
    planned: PlannedCapture, table: TableLook, look: ServerLook, versions: VersionsByTopic
) -> CapturedRows | None:
    """Registers the version of its schema, of cells by a sample of them. None: of a table that is captured already the next rows say what has become of
    it. Raises NotCaptured."""
    spec = planned.spec
    problems = [*table.problems, *filter(None, [spec.hidden.shown_by(table.generated)])]
    if problems:
        raise NotCaptured(" ".join(problems))
    try:
        if table.definition is None:
            raise NotCaptured(
                f"There is no table `{spec.database}.{spec.table}` that the account may read. Grant SELECT on it, or correct the feed."
            )
        rows = captured_rows(spec, table.definition, versions, look.charsets)
        if isinstance(rows, CapturedCells) and not planned.is_live:
            rows.take_types(rows.sampled_types(source_server.sample_cells(planned.url, rows)))
    except NotCaptured:
        if planned.is_live:
            return None
        raise
    return rows
