"""What the instance has logged since the last look: how much, and which exceptions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

_RAW_TRACEBACK = "Traceback (most recent call last)"


class Log:
    def __init__(self, file: Path) -> None:
        self._file, self._read_up_to = file, 0

    def next_part(self) -> str:
        with self._file.open("rb") as log:
            log.seek(self._read_up_to)
            part = log.read()
        self._read_up_to += len(part)
        return part.decode(errors="replace")


def exceptions(text: str) -> Iterator[str]:
    """What each traceback ends with, with what the line said that it came with. Of a chain of them the last, and of Java's the cause."""
    is_inside, last = False, ""
    for line in text.splitlines():
        record = _record(line)
        if record is not None:
            if "exception" in record:
                yield f"{record['message']}: {_last_sentence(record['exception'])}"
        elif _RAW_TRACEBACK in line:
            is_inside = True
        elif is_inside and line and not line.startswith((" ", "\t")):
            last, is_inside = line, False
            yield last


def _last_sentence(traceback: str) -> str:
    """What stands after frames last: of a server's error all lines, of Java's the innermost cause."""
    sentence: list[str] = []
    follows_frame = False
    for line in traceback.strip().splitlines():
        is_frame = line.startswith((" ", "\t"))
        if not is_frame:
            sentence = [line] if follows_frame else [*sentence, line]
        follows_frame = is_frame
    return " ".join(sentence)


def _record(line: str) -> dict[str, str] | None:
    if not line.startswith("{"):
        return None
    try:
        record: dict[str, str] = json.loads(line)
    except ValueError:
        return None
    return record
