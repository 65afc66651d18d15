"""The body of a cell: one JSON object, read strictly. What is no body is told by what is wrong with it, and is never half read."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from lakehub.kernel.json_texts import JsonDefect, UnusableJson, read_json, shown_json

MAX_BODY_BYTES = 4 * 2**20
_DEFECTS = {JsonDefect.SYNTAX: "corrupt", JsonDefect.REPEATED_NAME: "corrupt", JsonDefect.NUMBER: "type"}
_SURROGATE = re.compile("[\ud800-\udfff]")

Body = Mapping[str, Any]


class BrokenBody(ValueError):
    """No body of a cell. `defect`: a word for all that are broken alike, one of `heatpipe.broken_message.Defect`."""

    def __init__(self, defect: str, reason: str, field: str = "") -> None:
        super().__init__(reason)
        self.defect, self.field = defect, field


def read_body(content: bytes | str | None) -> Body | None:
    """None: the cell is deleted, as its body is null, in SQL or in JSON. Bytes that are no UTF-8 may come as surrogates in a text. Raises BrokenBody."""
    if content is None:
        return None
    text = _text(content)
    body = _parsed(text)
    if body is None:
        return None
    if not isinstance(body, dict):
        raise BrokenBody("corrupt", f"The body is {_kind(body)}, {shown_json(text)}, and not a JSON object.")
    for name, value in body.items():
        _check_value(name, value)
    return body


def _text(content: bytes | str) -> str:
    try:
        given = content if isinstance(content, bytes) else content.encode(errors="surrogateescape")
        if len(given) > MAX_BODY_BYTES:
            raise BrokenBody("oversized", f"The body has {len(given):,} bytes; {MAX_BODY_BYTES:,} are read.")
        return given.decode()
    except UnicodeError as problem:
        raise BrokenBody("invalid_utf8", f"The body is not UTF-8: {problem}.") from problem


def _parsed(text: str) -> Any:
    try:
        return read_json(text)
    except UnusableJson as problem:
        raise BrokenBody(_DEFECTS[problem.defect], f"The body {problem}.", problem.name) from problem


def _check_value(name: str, value: Any) -> None:
    """Half of a pair of surrogates is no character; JSON can escape one."""
    if _SURROGATE.search(name) or _SURROGATE.search(value if isinstance(value, str) else _nested_text(value)):
        raise BrokenBody("invalid_utf8", f"The field {shown_json(name)} has half of a character.", name)


def _nested_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else ""


def _kind(value: Any) -> str:
    return "a list" if isinstance(value, list) else "a text" if isinstance(value, str) else "a single value"
