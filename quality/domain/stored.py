"""Answers as JSON and back, with their types: what is kept is worth the same as what was measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from math import isfinite
from typing import Any, TypeAlias

from quality.domain.expression.measures import Answer

Json: TypeAlias = Any

_READ: dict[str, Callable[[Json], Any]] = {
    "decimal": Decimal,
    "float": float,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "map": lambda pairs: {name: from_json(value) for name, value in pairs},
}
"""By the one name in an object; whatever is no object stands for itself."""


def to_json(answer: Answer) -> Json:
    if isinstance(answer, Mapping):
        return {"map": [[name, to_json(value)] for name, value in answer.items()]}
    if isinstance(answer, Decimal):
        return {"decimal": str(answer)}
    if isinstance(answer, datetime):
        return {"datetime": answer.isoformat()}
    if isinstance(answer, date):
        return {"date": answer.isoformat()}
    if isinstance(answer, float) and not isfinite(answer):
        return {"float": str(answer)}
    return answer


def from_json(stored: Json) -> Any:
    if not isinstance(stored, dict):
        return stored
    ((kind, value),) = stored.items()
    return _READ[kind](value)
