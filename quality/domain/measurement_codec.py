"""Answers as JSON and back, with their types: what is kept is worth the same as what was measured.

Texts of the data may hold what a database does not take, though Parquet does: PostgreSQL knows no NUL, and nothing that
writes UTF-8 a lone surrogate. Whatever is stored of them goes through here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from math import isfinite
from typing import Any, TypeAlias

from quality.domain.language.measures import Answer

Json: TypeAlias = Any

_UNSTORABLE_CHARACTERS = re.compile("[\x00\ud800-\udfff]")
_DECODERS: dict[str, Callable[[Json], Any]] = {
    "decimal": Decimal,
    "float": float,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "map": lambda pairs: {from_json(name): from_json(value) for name, value in pairs},
    "text": lambda escaped: escaped.encode("ascii").decode("unicode_escape"),
}
"""By the one name in an object; whatever is no object stands for itself."""


def to_json(answer: Answer) -> Json:
    if isinstance(answer, Mapping):
        return {"map": [[to_json(name), to_json(value)] for name, value in answer.items()]}
    if isinstance(answer, Decimal):
        return {"decimal": str(answer)}
    if isinstance(answer, datetime):
        return {"datetime": answer.isoformat()}
    if isinstance(answer, date):
        return {"date": answer.isoformat()}
    if isinstance(answer, float) and not isfinite(answer):
        return {"float": str(answer)}
    if isinstance(answer, str) and _UNSTORABLE_CHARACTERS.search(answer):
        return {"text": answer.encode("unicode_escape").decode("ascii")}
    return answer


def from_json(stored: Json) -> Any:
    if not isinstance(stored, dict):
        return stored
    ((kind, value),) = stored.items()
    return _DECODERS[kind](value)


def storable_json(json_value: Json) -> Json:
    """The same JSON for people, in which what no database takes is written out: a NUL as `\\x00`."""
    if isinstance(json_value, str):
        return _UNSTORABLE_CHARACTERS.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), json_value)
    if isinstance(json_value, Mapping):
        return {storable_json(name): storable_json(value) for name, value in json_value.items()}
    if isinstance(json_value, list | tuple):
        return [storable_json(value) for value in json_value]
    if isinstance(json_value, float) and not isfinite(json_value):
        return str(json_value)
    return json_value
