"""Where the machine and the book differ first, so that a person can see what happened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from tests.web.incidents.quarter.results import Name, QuarterResults
from tests.web.incidents.quarter.scenario import Key

SHOWN = 6


def differences(machine: QuarterResults, book: QuarterResults, *, seed: int) -> str:
    """Empty where there are none; else the first of each kind, oldest first."""
    parts = [
        part for kind in QuarterResults._fields for part in _of_kind(kind, getattr(machine, kind), getattr(book, kind))
    ]
    return "" if not parts else f"seed {seed}: the machine does not do what the book says\n" + "\n".join(parts)


def _of_kind(kind: str, machine: Sequence[Any], book: Sequence[Any]) -> Iterator[str]:
    only_machine, only_book = _without(machine, book), _without(book, machine)
    if not only_machine and not only_book:
        return
    yield f"{kind}: {len(only_machine)} only in the machine, {len(only_book)} only in the book; the first:"
    differing = [("machine", item) for item in only_machine] + [("book", item) for item in only_book]
    for who, item in sorted(differing, key=lambda each: (each[1][0], str(each[1]), each[0]))[:SHOWN]:
        yield f"  {who:8}{_shown(item)}"


def _without(these: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    known = set(others)
    return [item for item in these if item not in known]


def _shown(value: Any) -> str:
    if isinstance(value, Key | Name):
        return str(value)
    if isinstance(value, datetime):
        return f"{value:%m-%d %H:%M}"
    if isinstance(value, tuple):
        names = getattr(value, "_fields", None)
        parts = [_shown(part_value) for part_value in value]
        shown_parts = [f"{name}={part}" for name, part in zip(names, parts, strict=True)] if names else parts
        return ", ".join(shown_parts) if names else f"[{'; '.join(shown_parts)}]"
    return str(value)
