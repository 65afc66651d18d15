"""A plan as it is shown: of long texts the part that differs, and sizes in words."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile

from frontend.ui import words
from ingestion.domain.pipelines.plan import Change, Effect
from ingestion.lake.files.table_sizes import TableSize
from ingestion.pipelines.planning import Plan, TableWrite

_SHOWN, _AROUND = 160, 40
"""Characters of a text, and of what is the same on both sides of what differs."""
_EFFECTS = {
    Effect.SETTINGS: "the dataset only",
    Effect.LATER_RUNS: "later runs",
    Effect.ALL_ROWS: "all rows",
}


@dataclass(frozen=True)
class ChangeRow:
    """`before`, `after`: empty: not there. `remakes`: rows are recomputed for it."""

    what: str
    before: str
    after: str
    effect: str
    remakes: bool


def change_rows(plan: Plan) -> list[ChangeRow]:
    return [_row(change) for change in plan.changes]


def read_rows(plan: Plan) -> list[tuple[str, str]]:
    """The datasets that are read as a whole, each with its size."""
    return [(each.dataset, size_text(each.size)) for each in plan.reads]


def written_text(writes: TableWrite) -> str:
    """`about 5,475 rows, 157.5 MB in 365 files: as many as the table holds now, which they replace`."""
    if writes.size is None:
        return f"size unknown. {writes.reason}"
    if not writes.is_estimate:
        return "0 rows, 0 B"
    return f"about {size_text(writes.size)}: as many as the table holds now, which they replace"


def size_text(size: TableSize | None) -> str:
    """`336,776 rows, 6.1 MB in 365 files`."""
    if size is None:
        return "size unknown"
    return f"{words.count(size.rows, 'row')}, {words.size(size.bytes)} in {words.count(size.files, 'file')}"


def excerpts(before: str, after: str) -> tuple[str, str]:
    """Of both texts, on one line, what differs and some of what is around it."""
    one_line = (" ".join(before.split()), " ".join(after.split()))
    if max(map(len, one_line)) <= _SHOWN:
        return one_line
    start = _same(*one_line)
    end = min(_same(one_line[0][::-1], one_line[1][::-1]), min(map(len, one_line)) - start)
    return _cut(one_line[0], start, end), _cut(one_line[1], start, end)


def _same(left: str, right: str) -> int:
    """Characters at the start of both that are the same."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False)))


def _cut(text: str, start: int, end: int) -> str:
    """`start`, `end`: characters at either side that are the same in the other text."""
    first, last = max(0, start - _AROUND), len(text) - max(0, end - _AROUND)
    part = text[first:last]
    shown = part if len(part) <= _SHOWN * 2 else f"{part[: _SHOWN * 2]}…"
    return f"{'…' if first else ''}{shown}{'…' if last < len(text) and not shown.endswith('…') else ''}"


def _row(change: Change) -> ChangeRow:
    before, after = excerpts(change.before, change.after)
    return ChangeRow(change.what, before, after, _EFFECTS[change.effect], change.effect is Effect.ALL_ROWS)
