"""Texts that say a time, such as 20261116 or 16.11.2026, by a pattern like strptime's: strict both ways, in English, without a clock."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property, lru_cache

# In English, whatever the locale of the machine is.
_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]


@dataclass(frozen=True)
class _Directive:
    """One field of a time: `expression` is how its text looks, `text` writes it, `value` reads it. `width`: of a number, in digits."""

    field: str
    expression: str
    text: Callable[[datetime], str]
    value: Callable[[str], int] = int
    width: int = 0


def _number(field: str, width: int, number: Callable[[datetime], int]) -> _Directive:
    return _Directive(field, rf"\d{{{width}}}", lambda at: f"{number(at):0{width}d}", width=width)


def _quarter(at: datetime) -> int:
    return (at.month + 2) // 3


_DIRECTIVES: Mapping[str, _Directive] = {
    "Y": _number("year", 4, lambda at: at.year),
    "y": _Directive(
        "year", r"\d\d", lambda at: f"{at.year % 100:02d}", lambda text: (int(text) + 31) % 100 + 1969, width=2
    ),
    "m": _number("month", 2, lambda at: at.month),
    "b": _Directive(
        "month",
        "|".join(month[:3] for month in _MONTHS),
        lambda at: _MONTHS[at.month - 1][:3],
        lambda text: [month[:3] for month in _MONTHS].index(text) + 1,
    ),
    "B": _Directive("month", "|".join(_MONTHS), lambda at: _MONTHS[at.month - 1], lambda text: _MONTHS.index(text) + 1),
    "d": _number("day", 2, lambda at: at.day),
    "j": _number("day of year", 3, lambda at: at.timetuple().tm_yday),
    "G": _number("week year", 4, lambda at: at.isocalendar().year),
    "V": _number("week", 2, lambda at: at.isocalendar().week),
    "q": _Directive("quarter", "[1-4]", lambda at: str(_quarter(at))),
    "H": _number("hour", 2, lambda at: at.hour),
    "M": _number("minute", 2, lambda at: at.minute),
    "S": _number("second", 2, lambda at: at.second),
}
_TOKEN = re.compile(r"%(-?)(.)|([^%]+)|(%)", re.DOTALL)


class BadPattern(ValueError):
    """Says which part of a pattern is not understood, and what is."""


@dataclass(frozen=True)
class TimePattern:
    """`%Y%m%d` and the like; `%-m` has no zero in front, `%q` is the quarter, `%G` and `%V` the ISO week. Raises BadPattern."""

    text: str

    def __post_init__(self) -> None:
        fields = [directive.field for directive, _ in self._directives]
        if not fields:
            raise BadPattern(f"The pattern {self.text!r} says no time. Write it like %Y%m%d.")
        twice = next((field for field in fields if fields.count(field) > 1), None)
        if twice is not None:
            raise BadPattern(f"The pattern {self.text!r} says the {twice} twice. Name each part of the time once.")
        if self._is_ambiguous:
            raise BadPattern(
                f"The pattern {self.text!r} may be read in several ways: where numbers without a zero in front stand side by "
                "side, 111 is 1 and 11, and 11 and 1. Write %m in place of %-m, or a character between them."
            )

    @property
    def _is_ambiguous(self) -> bool:
        """Two numbers of unknown length, with nothing between them but digits."""
        open_number = False
        for piece in self._pieces:
            if isinstance(piece, str):
                open_number &= piece.isdecimal()
                continue
            directive, unpadded = piece
            if unpadded and directive.field != "year" and directive.width:
                if open_number:
                    return True
                open_number = True
            elif not directive.width:
                open_number &= directive.field == "quarter"
        return False

    @cached_property
    def fields(self) -> frozenset[str]:
        """What a text says: year, month, day, hour, ..."""
        return frozenset(directive.field for directive, _ in self._directives)

    def format(self, local: datetime) -> str:
        return "".join(
            piece if isinstance(piece, str) else _write(piece[0], local, unpadded=piece[1]) for piece in self._pieces
        )

    def parse(self, text: str) -> datetime:
        """A local time without a zone; what the text does not say is the first of its kind. Raises ValueError."""
        match = self._expression.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is not of the form {self.text}")
        values = {
            directive.field: directive.value(group)
            for (directive, _), group in zip(self._directives, match.groups(), strict=True)
        }
        try:
            local = _local_time(values)
        except ValueError:
            raise ValueError(f"{text!r} is not a time of the calendar") from None
        if self.format(local) != text:
            raise ValueError(f"{text!r} is not a time of the calendar")
        return local

    @cached_property
    def _pieces(self) -> tuple[str | tuple[_Directive, bool], ...]:
        return tuple(self._piece(match) for match in _TOKEN.finditer(self.text))

    def _piece(self, match: re.Match[str]) -> str | tuple[_Directive, bool]:
        flag, letter, literal, _ = match.groups()
        if literal is not None:
            return str(literal)
        if letter == "%" and not flag:
            return "%"
        if letter is None or letter not in _DIRECTIVES:
            known = ", ".join(f"%{known_letter}" for known_letter in _DIRECTIVES)
            raise BadPattern(f"{match.group()!r} in the pattern {self.text!r} is not understood. Write {known}.")
        return _DIRECTIVES[letter], bool(flag)

    @cached_property
    def _directives(self) -> tuple[tuple[_Directive, bool], ...]:
        return tuple(piece for piece in self._pieces if not isinstance(piece, str))

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        return re.compile(
            "".join(
                re.escape(piece) if isinstance(piece, str) else f"({_expression_of(*piece)})" for piece in self._pieces
            ),
            re.ASCII,
        )


@lru_cache(maxsize=256)
def time_pattern(text: str) -> TimePattern:
    """Raises BadPattern."""
    return TimePattern(text)


def _write(directive: _Directive, local: datetime, *, unpadded: bool) -> str:
    text = directive.text(local)
    return (text.lstrip("0") or "0") if unpadded else text


def _expression_of(directive: _Directive, unpadded: bool) -> str:
    """Bounded: of fields without a width that follow each other a long value has too many readings to try."""
    if not unpadded or not directive.width:
        return directive.expression
    return rf"0|[1-9]\d{{0,{directive.width - 1}}}"


def _local_time(values: Mapping[str, int]) -> datetime:
    """Raises ValueError where there is no such day or hour."""
    clock = (values.get("hour", 0), values.get("minute", 0), values.get("second", 0))
    return datetime(*_day(values).timetuple()[:3], *clock)  # noqa: DTZ001 - a local time: who parses knows the zone


def _day(values: Mapping[str, int]) -> date:
    if "week" in values:
        return date.fromisocalendar(values.get("week year", values.get("year", 1)), values["week"], 1)
    year = values.get("year", 1)
    if "day of year" in values:
        return date.fromordinal(date(year, 1, 1).toordinal() + values["day of year"] - 1)
    month = values.get("month", 3 * values["quarter"] - 2 if "quarter" in values else 1)
    return date(year, month, values.get("day", 1))
