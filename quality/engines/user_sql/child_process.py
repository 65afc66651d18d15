"""What both sides of a confined process share: the system's limits, the one number that is an answer, and values as JSON.

The statement was looked at before (`checked_select`); what is here holds also where that was fooled.
"""

from __future__ import annotations

import resource
import signal
import sys
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

_PAGE_SIZE = resource.getpagesize()
_ADDRESS_HEADROOM = 2**30
"""Addresses that threads and allocators set aside and hardly use."""
_MAX_ERROR_CHARACTERS = 500

UNFIT_VALUE_MESSAGE = (
    "the query meets a value that it cannot convert or compute with; TRY_CAST gives NULL for such a one"
)
"""In place of what the database says: it shows the value."""
MEMORY_MESSAGE = "the query needs more memory than it may have"
TIMEOUT_MESSAGE = "the query took longer than its timeout"


def first_line(message: str) -> str:
    """Of what a database says, which may repeat a whole query."""
    return message.splitlines()[0][:_MAX_ERROR_CHARACTERS]


def limit_process(*, seconds: float, memory: int, threads: int) -> None:
    """The process is killed by the system where it exceeds one of these; the parent has a clock of its own as well."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * _PAGE_SIZE if sys.platform == "linux" else 2**30
    for resource_kind, most in (
        (resource.RLIMIT_AS, used + 2 * memory + _ADDRESS_HEADROOM),
        (resource.RLIMIT_CPU, int(seconds * threads) + 1),
        (resource.RLIMIT_FSIZE, 2 * memory),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(resource_kind)[1]
        allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
        # A second more for the one that is told first, by a signal of its own.
        resource.setrlimit(resource_kind, (allowed, allowed + 1 if hard == resource.RLIM_INFINITY else hard))
    signal.setitimer(signal.ITIMER_REAL, seconds + 1)


def check_single_number(rows: list[Any]) -> object:
    """The one number of the one row. Raises ValueError."""
    if len(rows) != 1 or len(rows[0]) != 1:
        shown = "no row" if not rows else "more than one row" if len(rows) > 1 else f"{len(rows[0])} columns"
        raise ValueError(f"the query answers {shown}; one row with one number is wanted")
    value = rows[0][0]
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float | Decimal)):
        # Not the value: who may read the error need not be one who may read the data.
        raise ValueError(f"the query answers a {type(value).__name__}, which is no number")
    return value


# Between the two processes


def encode_value(value: object) -> list[str] | None:
    """A value with its type, as JSON has it."""
    if value is None:
        return None
    text = value.isoformat() if isinstance(value, date) else repr(value) if isinstance(value, float) else str(value)
    return [type(value).__name__, text]


_DECODERS: dict[str, Callable[[str], object]] = {
    "int": int,
    "float": float,
    "Decimal": Decimal,
    "str": str,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
}


def decode_value(value: list[str] | None) -> Any:
    return None if value is None else _DECODERS[value[0]](value[1])
