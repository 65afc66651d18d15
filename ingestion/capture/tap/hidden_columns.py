"""Columns that nobody is to see: not read, as a keyed hash, or null. The tap, the first load and a mended row hide them alike, before anything is written.

A plain SHA-256 of a telephone number, a name or a number is found by trying all of them, so a hash has a key (HMAC-SHA-256).
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ingestion.capture.binlog.column_changes import Alteration

LEFT_OUT, HASHED, MASKED = "left_out", "hashed", "masked"
_LISTS = (LEFT_OUT, HASHED, MASKED)
_OPTION, KEY_OPTION, _KEY_ID = "hidden_columns", "hash_key", "key"
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)
_KEY_ID_TEXT = b"which key hashes the columns"


class NoHashKey(ValueError):
    """Columns are to be hashed, and there is no key."""


@dataclass(frozen=True)
class HiddenColumns:
    """`left_out` columns are not captured at all, `hashed` ones are a text of 64 hexadecimal digits, `masked` ones are null. `key`: of the hashes; equal
    values have equal hashes wherever it is the same."""

    left_out: frozenset[str] = frozenset()
    hashed: frozenset[str] = frozenset()
    masked: frozenset[str] = frozenset()
    key: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if self.hashed and not self.key:
            raise NoHashKey(f"The columns {', '.join(sorted(self.hashed))} are to be hashed, and no key is given.")

    def __bool__(self) -> bool:
        return bool(self.names)

    @cached_property
    def names(self) -> frozenset[str]:
        return self.left_out | self.hashed | self.masked

    def how(self, name: str) -> str:
        """In words; empty: it is not hidden."""
        return next((each.replace("_", " ") for each in _LISTS if name in getattr(self, each)), "")

    def shown_by(self, generated: Mapping[str, Collection[str]]) -> str:
        """Which column would show a hidden one, in words; empty: none. `generated`: by column that the server makes of others, of which."""
        hidden = {name.casefold(): name for name in self.names}
        for name, origins in generated.items():
            origin = next((hidden[each.casefold()] for each in origins if each.casefold() in hidden), None)
            if origin is not None and name.casefold() not in hidden:
                return (
                    f"Its column `{name}` is generated from `{origin}`, which is to be {self.how(origin)}, and would show it. Drop that column, or name it in the "
                    "settings of the dataset, too."
                )
        return ""

    def digest(self, value: Any) -> str | None:
        """Of a value as the lake would have it: bytes as they are, all else as its text in UTF-8. Null stays null."""
        if value is None:
            return None
        content = value if isinstance(value, bytes) else str(value).encode(errors="surrogateescape")
        return hmac.digest(self.key.encode(), content, "sha256").hex()

    def concealed(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """A row that may have been put aside before its columns were hidden, or that a person has mended. What is a hash already stays."""
        return {name: self._concealed(name, value) for name, value in row.items() if name not in self.left_out}

    def _concealed(self, name: str, value: Any) -> Any:
        if name in self.masked:
            return None
        if name not in self.hashed or (isinstance(value, str) and _HASH.fullmatch(value)):
            return value
        return self.digest(value)

    def as_options(self) -> dict[str, str]:
        """Of a job's source, without the key."""
        return {_OPTION: json.dumps(self._lists())} if self else {}

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> HiddenColumns:
        lists = json.loads(options.get(_OPTION, "{}"))
        return cls(**{name: frozenset(columns) for name, columns in lists.items()}, key=options.get(KEY_OPTION, ""))

    def as_json(self) -> dict[str, Any]:
        """To know later whether they are the same: with a name of the key, by which nobody finds it. Empty: none is hidden."""
        if not self:
            return {}
        key_id = hmac.digest(self.key.encode(), _KEY_ID_TEXT, "sha256").hex()[:16] if self.hashed else ""
        return {**self._lists(), _KEY_ID: key_id}

    def _lists(self) -> dict[str, list[str]]:
        return {name: sorted(getattr(self, name)) for name in _LISTS}


def shows_hidden(hidden: HiddenColumns, altered: Alteration) -> str:
    """Why nothing is captured from an altered table any more; empty: no column that it has now shows a hidden one. By the words of the statement: the server may have another
    definition since."""
    if hidden and altered.is_like:
        return "It was made like another table, and nothing says whether one of its columns is generated from one that nobody is to see."
    return hidden.shown_by(altered.computed)


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Between two of `as_json`, in words, such as `email` is masked, and was not hidden. Empty: they hide the same in the same way."""
    return [*_differences(before, after)]


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    was, becomes = _ways(before), _ways(after)
    for name in sorted(was.keys() | becomes.keys()):
        old, new = was.get(name, "not hidden"), becomes.get(name, "not hidden")
        if old != new:
            yield f"`{name}` is {new}, and was {old}"
    kept = set(before.get(HASHED, ())) & set(after.get(HASHED, ()))
    if kept and before[_KEY_ID] != after[_KEY_ID]:
        names = ", ".join(f"`{name}`" for name in sorted(kept))
        yield f"{names} is hashed with another key, as LAKEHUB_ENCRYPTION_KEY is another one"


def _ways(stored: Mapping[str, Any]) -> dict[str, str]:
    return {name: way.replace("_", " ") for way in _LISTS for name in stored.get(way, ())}
