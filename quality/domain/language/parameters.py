"""The parameters of a run that an expression may carry: one line each in PARAMETERS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias
from zoneinfo import ZoneInfo

from lakehub.kernel.suggest import did_you_mean
from quality.domain.language.tree.errors import ExpressionError, TextRange
from quality.domain.language.tree.literals import format_duration, parse_duration, unquote_name, unquote_text
from quality.domain.periods import MAX_PERIOD
from quality.domain.timeliness.production_calendar import BadCalendar, parse_calendar

_MAX_COUNT_DIGITS = 15
ParameterValue: TypeAlias = str | int | timedelta
_UTC = ZoneInfo("UTC")

MIN_TIMEOUT, MAX_TIMEOUT = timedelta(seconds=1), timedelta(minutes=30)
"""A scan holds a slot of its engine and a worker for so long."""
MIN_RUN_INTERVAL = timedelta(seconds=30)
"""Between two runs of a unit: one that is due again as soon as it was run would fill a worker by itself."""


@dataclass(frozen=True)
class ParameterSpec:
    """`expected` is for the error, `terminals` say how it may be written, `parse` makes its value. `choices`: one of them."""

    expected: str
    terminals: tuple[str, ...]
    parse: Callable[[str], ParameterValue]
    choices: tuple[str, ...] = ()


def _choice_of(*words: str) -> ParameterSpec:
    return ParameterSpec("a word", ("IDENTIFIER",), str, words)


def _parse_calendar(quoted: str) -> str:
    return parse_calendar(unquote_text(quoted), "", _UTC).calendar


def _parse_count(digits: str) -> int:
    """Raises OverflowError, ValueError."""
    if len(digits) > _MAX_COUNT_DIGITS:
        raise OverflowError(f"{len(digits)} digits")
    return int(digits)


def _parse_holidays(quoted: str) -> str:
    return parse_calendar("", unquote_text(quoted), _UTC).holidays


_DURATION = ParameterSpec("a duration such as 30m", ("DURATION",), parse_duration)
_NAME = ParameterSpec("a name", ("IDENTIFIER", "QUOTED"), unquote_name)
_COUNT = ParameterSpec("a whole number such as 30", ("NUMBER",), _parse_count)

PARAMETERS: dict[str, ParameterSpec] = {
    "engine": ParameterSpec("a word such as duckdb", ("IDENTIFIER",), str),
    "partition": _choice_of("each", "whole"),
    "sustain": _DURATION,
    "cadence": _DURATION,
    "timeout": _DURATION,
    "by": _NAME,
    "least": _COUNT,
    "most": _COUNT,
    "dc": _NAME,
    "calendar": ParameterSpec("a cron line in quotes such as '0 9 * * mon-fri'", ("TEXT",), _parse_calendar),
    "holidays": ParameterSpec("countries and dates in quotes such as 'US, 2026-12-24'", ("TEXT",), _parse_holidays),
}


_MOST = {
    "timeout": format_duration(MAX_TIMEOUT),
    **dict.fromkeys(("least", "most"), f"a number of {_MAX_COUNT_DIGITS} digits"),
}
"""Where it is not the longest period."""


def parse_parameter(name: str, terminal: str, text: str, where: TextRange) -> ParameterValue:
    """The value of one parameter. Raises ExpressionError."""
    parameter = PARAMETERS[name]
    if parameter.choices and text not in parameter.choices:
        raise ExpressionError(f"`{name}` cannot be `{text}`.{did_you_mean(text, parameter.choices)}", where=where)
    if terminal not in parameter.terminals:
        raise ExpressionError(f"`{name}` wants {parameter.expected}, not `{text}`.", where=where)
    try:
        return parameter.parse(text)
    except BadCalendar as problem:
        raise ExpressionError(str(problem), where=where) from None
    except OverflowError:
        most = _MOST.get(name, f"{MAX_PERIOD.days}d")
        raise ExpressionError(f"`{name}` is {most} at most, not `{text[:60]}`.", where=where) from None
    except ValueError:
        shown = text if len(text) <= 60 else f"{text[:60]}..."
        raise ExpressionError(f"`{name}` wants {parameter.expected}, not `{shown}`.", where=where) from None
