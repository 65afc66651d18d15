"""JSON of others, read strictly: what Python's reader takes and JSON has not, or what no column holds, is refused, and never half read."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from enum import Enum, auto
from math import isfinite
from typing import Any

MAX_DEPTH = 100
"""Of objects and lists within each other."""
_LONG = 2**63
_MAX_SHOWN = 60


class JsonDefect(Enum):
    SYNTAX = auto()
    """No JSON, or nested too deeply."""
    REPEATED_NAME = auto()
    NUMBER = auto()
    """One that JSON does not have, or that takes more than 64 bits."""


class UnusableJson(ValueError):
    """The message goes on after what the text is, such as `The body`. `name`: that is there twice."""

    def __init__(self, defect: JsonDefect, reason: str, name: str = "") -> None:
        super().__init__(reason)
        self.defect, self.name = defect, name


def read_json(text: str) -> Any:
    """Raises UnusableJson."""
    try:
        value = json.loads(
            text, object_pairs_hook=_object, parse_constant=_no_constant, parse_float=_finite, parse_int=_whole
        )
    except UnusableJson:
        raise
    except RecursionError as problem:
        raise _too_deep() from problem
    except ValueError as problem:
        reason = f"is not JSON: {problem}. It begins with {shown_json(text)}"
        raise UnusableJson(JsonDefect.SYNTAX, reason) from problem
    if _is_too_deep(value):
        raise _too_deep()
    return value


def shown_json(text: str) -> str:
    """Its beginning, for people."""
    cut = text[:_MAX_SHOWN].encode(errors="backslashreplace").decode()
    return f"`{cut}{'…' if len(text) > _MAX_SHOWN else ''}`"


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        twice = next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        raise UnusableJson(JsonDefect.REPEATED_NAME, f"has the name {shown_json(twice)} twice in an object", twice)
    return value


def _no_constant(name: str) -> Any:
    raise UnusableJson(
        JsonDefect.NUMBER, f"has the number {name}, which JSON does not have. Write null, or it as a text"
    )


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise _too_large(text)
    return number


def _whole(text: str) -> int:
    """Before it is made, which takes long for one of many digits."""
    number = int(text) if len(text) <= len(str(-_LONG)) else _LONG
    if not -_LONG <= number < _LONG:
        raise _too_large(text)
    return number


def _too_large(text: str) -> UnusableJson:
    return UnusableJson(
        JsonDefect.NUMBER, f"has the number {shown_json(text)}, which 64 bits do not hold. Write it as a text"
    )


def _is_too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        nested = [each for each in level if isinstance(each, dict | list)]
        if not nested:
            return False
        level = [inner for each in nested for inner in (each.values() if isinstance(each, dict) else each)]
    return True


def _too_deep() -> UnusableJson:
    return UnusableJson(JsonDefect.SYNTAX, f"is nested deeper than {MAX_DEPTH}")
