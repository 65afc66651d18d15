"""The parameters of a run that an expression may carry: one line each in PARAMETERS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias
from zoneinfo import ZoneInfo

from lakehub.kernel.suggest import did_you_mean
from quality.domain.expression.amounts import duration_of, text_of
from quality.domain.expression.errors import ExpressionError, Where
from quality.domain.production import BadCalendar, production

ParameterValue: TypeAlias = str | int | timedelta
_UTC = ZoneInfo("UTC")

SHORTEST_TIMEOUT, LONGEST_TIMEOUT = timedelta(seconds=1), timedelta(minutes=30)
"""A scan holds a slot of its engine and a worker for so long."""
SHORTEST_WAIT = timedelta(seconds=30)
"""Between two runs of a unit: one that is due again as soon as it was run would fill a worker by itself."""


@dataclass(frozen=True)
class Parameter:
    """`wants` is for the error, `terminals` say how it may be written, `read` makes its value. `words`: one of them."""

    wants: str
    terminals: tuple[str, ...]
    read: Callable[[str], ParameterValue]
    words: tuple[str, ...] = ()


def _words(*words: str) -> Parameter:
    return Parameter("a word", ("IDENTIFIER",), str, words)


def _calendar(quoted: str) -> str:
    return production(text_of(quoted), "", _UTC).calendar


def _holidays(quoted: str) -> str:
    return production("", text_of(quoted), _UTC).holidays


_DURATION = Parameter("a duration such as 30m", ("DURATION",), duration_of)
_NAME = Parameter("a name", ("IDENTIFIER", "QUOTED"), lambda text: text.strip('"'))
_COUNT = Parameter("a whole number such as 30", ("NUMBER",), int)

PARAMETERS: dict[str, Parameter] = {
    "engine": _words("duckdb", "spark", "sqlalchemy"),
    "partition": _words("each", "whole"),
    "sustain": _DURATION,
    "cadence": _DURATION,
    "timeout": _DURATION,
    "by": _NAME,
    "least": _COUNT,
    "most": _COUNT,
    "dc": _NAME,
    "calendar": Parameter("a cron line in quotes such as '0 9 * * mon-fri'", ("TEXT",), _calendar),
    "holidays": Parameter("countries and dates in quotes such as 'US, 2026-12-24'", ("TEXT",), _holidays),
}


def parameter_value(name: str, terminal: str, text: str, where: Where) -> ParameterValue:
    """The value of one parameter. Raises ExpressionError."""
    parameter = PARAMETERS[name]
    if parameter.words and text not in parameter.words:
        raise ExpressionError(f"`{name}` cannot be `{text}`.{did_you_mean(text, parameter.words)}", where=where)
    if terminal not in parameter.terminals:
        raise ExpressionError(f"`{name}` wants {parameter.wants}, not `{text}`.", where=where)
    try:
        return parameter.read(text)
    except BadCalendar as problem:
        raise ExpressionError(str(problem), where=where) from None
    except OverflowError:
        raise ExpressionError("The duration is too long.", where=where) from None
    except ValueError:
        raise ExpressionError(f"`{name}` wants {parameter.wants}, not `{text}`.", where=where) from None
