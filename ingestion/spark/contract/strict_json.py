"""Frozen dataclasses to and from JSON, strictly: an unknown field, a missing one or a wrong type is refused by its path."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import MISSING, asdict, fields, is_dataclass
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from lakehub.kernel.suggest import did_you_mean

T = TypeVar("T")


class ContractError(ValueError):
    """The JSON is not what the dataclass wants; the message names the field, the value and the remedy."""


def load(kind: type[T], text: str, *, source: str) -> T:
    """`source` names the text in messages, such as a file."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as problem:
        raise ContractError(f"{source} is not JSON: {problem}") from None
    return decode(kind, value, source)


def dump(value: Any) -> str:
    return json.dumps(asdict(value), indent=2, sort_keys=True)


def decode(kind: type[T], value: object, path: str) -> T:
    if not isinstance(value, Mapping):
        raise ContractError(f"{path} is {_display_value(value)}, but an object is wanted.")
    hints = get_type_hints(kind)
    known_fields = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]  # every caller hands a dataclass
    for name in value:
        if name not in known_fields:
            raise ContractError(f"{path} has the unknown field `{name}`.{did_you_mean(name, known_fields)}")
    for name, field in known_fields.items():
        if name not in value and field.default is MISSING and field.default_factory is MISSING:
            raise ContractError(f"{path} lacks the field `{name}`.")
    return kind(**{name: _value(hints[name], given, f"{path}.{name}") for name, given in value.items()})


def _value(hint: Any, value: object, path: str) -> Any:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return None if value is None else _value(_not_none(hint), value, path)
    if origin is tuple:
        return tuple(
            _value(get_args(hint)[0], item, f"{path}[{place}]") for place, item in enumerate(_list(value, path))
        )
    if origin is dict:
        return {
            str(name): _value(get_args(hint)[1], item, f"{path}.{name}") for name, item in _object(value, path).items()
        }
    if is_dataclass(hint):
        return decode(hint, value, path)  # type: ignore[arg-type]  # a class, as it stands in a type hint
    return _scalar(hint, value, path)


def _scalar(hint: Any, value: object, path: str) -> object:
    if hint is Any:
        return value
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        raise ContractError(f"{path} is {_display_value(value)}, but {hint.__name__} is wanted.")
    return value


def _not_none(hint: Any) -> Any:
    (inner,) = (argument for argument in get_args(hint) if argument is not type(None))
    return inner


def _list(value: object, path: str) -> list[object]:
    if not isinstance(value, list):
        raise ContractError(f"{path} is {_display_value(value)}, but a list is wanted.")
    return value


def _object(value: object, path: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ContractError(f"{path} is {_display_value(value)}, but an object is wanted.")
    return value


def _display_value(value: object) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."
