"""What a changelog, or a history, has otherwise than its source, by key and how often."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.soak.capture.accounting.binlog import Change, Changes
from tests.soak.capture.topic import TOPIC

_SHOWN = 20


def topic_problems(made: Changes, logged: Changes, repeated: Changes, folder: Path) -> Iterator[str]:
    """`repeated`: also those that were before the topic was read again, so none of them has to be there twice."""
    surplus = logged - made - repeated
    yield from differences(f"the changelog of {TOPIC}", made, (logged & made) + surplus, folder)


def differences(where: str, made: Changes, kept: Changes, folder: Path) -> Iterator[str]:
    for what, changes in (("lacks", made - kept), ("has too often, or has invented,", kept - made)):
        if changes:
            named = [_name(change, times) for change, times in sorted(changes.items())]
            file = folder / f"{where} {what.split()[0]}.txt".replace(" ", "-")
            file.write_text("\n".join(named) + "\n")
            rest = f", and {len(named) - _SHOWN} more in {file}" if len(named) > _SHOWN else ""
            yield f"{where} {what} {changes.total()} changes: {'; '.join(named[:_SHOWN])}{rest}"


def _name(change: Change, times: int) -> str:
    what = ("put aside: " if change.is_put_aside else "") + ("delete of" if change.is_deleted else "write of")
    return f"{what} {'/'.join(change.key)} in transaction {change.sequence}" + (
        f" ({times} times)" if times > 1 else ""
    )
