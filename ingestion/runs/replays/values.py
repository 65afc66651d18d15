"""The values that take the place of a rejected row's own: read from what a person wrote, and refused where they cannot be stored."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import Refused
from lakehub.kernel.suggest import did_you_mean

MAX_VALUES = 100_000
"""Characters of the values of one row, as JSON."""
_MAX_SHOWN = 100
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


def parse_values(text: str) -> dict[str, Any]:
    """What a person wrote: a JSON object by column; nothing: no values. Raises Refused."""
    try:
        values = json.loads(text, parse_constant=_refuse_constant) if text.strip() else {}
    except (ValueError, RecursionError) as problem:
        raise Refused.for_fields({"values": f'This is not JSON: {problem}. Write {{"amount": 1.5}}.'}) from None
    if not isinstance(values, dict):
        raise Refused.for_fields({"values": 'Write the values by column, as in {"amount": 1.5}.'})
    return values


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON")


def check_values(dataset: Dataset, values: Mapping[str, Any]) -> None:
    """Raises Refused."""
    try:
        # A number such as 1e999 is infinite when it was read, which no database holds as JSON.
        text = json.dumps(values, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (ValueError, RecursionError):
        raise Refused.for_fields(
            {"values": "The values are nested too deeply, hold half a character, or a number that is too large."}
        ) from None
    if len(text) > MAX_VALUES:
        raise Refused.for_fields(
            {
                "values": f"The values of a row have {len(text):,} characters: {MAX_VALUES:,} at most. Correct longer rows in the source."
            }
        )
    if _NUL.search(text):
        raise Refused.for_fields({"values": "The values hold a NUL character: take it out."})
    known = [column["name"] for column in dataset.columns]
    for name, value in values.items():
        if known and name not in known and value is not None:
            near = did_you_mean(name[:_MAX_SHOWN], known)
            raise Refused.for_fields({"values": f"`{dataset.name}` has no column `{name[:_MAX_SHOWN]}`.{near}"})
