"""The body of a cell: one JSON object, read strictly. What is no body is told by what is wrong with it, and is never half read."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

MAX_BODY_BYTES = 4 * 2**20
MAX_DEPTH = 100
"""Of objects and lists within each other."""
_MAX_SHOWN = 60
_LONG = 2**63
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
        raise BrokenBody("corrupt", f"The body is {_kind(body)}, {_shown(text)}, and not a JSON object.")
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
        body = json.loads(
            text, object_pairs_hook=_object, parse_constant=_no_constant, parse_float=_finite, parse_int=_whole
        )
    except BrokenBody:
        raise
    except RecursionError as problem:
        raise _too_deep() from problem
    except ValueError as problem:
        raise BrokenBody("corrupt", f"The body is not JSON: {problem}. It begins with {_shown(text)}.") from problem
    if _depth_of(body) > MAX_DEPTH:
        raise _too_deep()
    return body


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    body = dict(pairs)
    if len(body) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise BrokenBody("corrupt", f"The body has the name {_shown(twice)} twice in an object.", twice)
    return body


def _no_constant(name: str) -> Any:
    raise BrokenBody("type", f"The body has the number {name}, which JSON does not have.")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise BrokenBody("type", f"The body has the number {_shown(text)}, which 64 bits do not hold.")
    return number


def _whole(text: str) -> int:
    """Before it is made, which takes long for one of many digits."""
    number = int(text) if len(text) <= len(str(-_LONG)) else _LONG
    if not -_LONG <= number < _LONG:
        raise BrokenBody("type", f"The body has the whole number {_shown(text)}, which 64 bits do not hold.")
    return number


def _depth_of(body: Any) -> int:
    depth, level = 0, [body]
    while level and depth <= MAX_DEPTH:
        nested = [each for each in level if isinstance(each, dict | list)]
        depth += bool(nested)
        level = [inner for each in nested for inner in (each.values() if isinstance(each, dict) else each)]
    return depth


def _too_deep() -> BrokenBody:
    return BrokenBody("corrupt", f"The body is nested deeper than {MAX_DEPTH}.")


def _check_value(name: str, value: Any) -> None:
    """Half of a pair of surrogates is no character; JSON can escape one."""
    if _SURROGATE.search(name) or _SURROGATE.search(value if isinstance(value, str) else _nested_text(value)):
        raise BrokenBody("invalid_utf8", f"The field {_shown(name)} has half of a character.", name)


def _nested_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else ""


def _kind(value: Any) -> str:
    return "a list" if isinstance(value, list) else "a text" if isinstance(value, str) else "a single value"


def _shown(text: str) -> str:
    cut = text[:_MAX_SHOWN].encode(errors="backslashreplace").decode()
    return f"`{cut}{'…' if len(text) > _MAX_SHOWN else ''}`"
