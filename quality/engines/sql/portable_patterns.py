"""Regular expressions that mean the same on every engine.

The engines have four libraries (RE2, Java's, PostgreSQL's, PCRE) which agree on the core and differ at the edges. So a pattern
is read once, in RE2's syntax, and written again for each engine; what they do not share is refused, with its name.

Allowed: literals, `.`, classes such as [a-z0-9_] and \\d \\w \\s (ASCII), groups, |, * + ? {m,n}, ^ $, and (?i) at the start.
`.` is any character but a line feed. The whole value must match.

Java's and PCRE try one way after the other: a repetition within a repetition, such as (a+)+, may take them for ever on a short
value, as may many repetitions one after the other (`scans.pattern_effort` counts). There they are refused; RE2 and PostgreSQL go
through a value once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from quality.engines.scans.pattern_effort import check_effort
from quality.engines.scans.pattern_tree import TooMuchEffort

_CHARACTER_CLASSES = {"d": "0-9", "w": "A-Za-z0-9_", "s": r"\t\n\f\r "}
_CONTROLS = frozenset("tnrf")
_ATOM = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?:|\{\d+(?:,\d*)?\}|.", re.DOTALL)
_TOKEN = re.compile(r"\\x[0-9A-Fa-f]{2}|\\.|\(\?[^:]?|\[\^?\]?|.", re.DOTALL)


class NotPortable(ValueError):
    """A pattern that some engine would not understand; says which part of it."""


@dataclass(frozen=True)
class RegexFlavour:
    """How a library writes the start and the end of a text, and what comes first where case does not matter."""

    start: str = r"\A"
    end: str = r"\z"
    ignore_case: str = "(?i)"
    backtracks: bool = False


RE2 = RegexFlavour()
JAVA = RegexFlavour(ignore_case="(?iu)", backtracks=True)
PCRE = RegexFlavour(backtracks=True)
POSTGRESQL = RegexFlavour(end=r"\Z")


@lru_cache(maxsize=1024)
def write_pattern(pattern: str, flavour: RegexFlavour) -> str:
    """The pattern for the library of this flavour, anchored at both ends. Raises NotPortable."""
    _check_by_re2(pattern)
    ignore_case = pattern.startswith("(?i)")
    body = "".join(_rewrite(pattern.removeprefix("(?i)"), flavour))
    if flavour.backtracks and (nested := _nested_repetition(pattern.removeprefix("(?i)"))):
        raise NotPortable(
            f"`{pattern}` repeats a group that repeats something itself (`{nested}`): this engine may try that for ever. "
            "Write it with one repetition, or read a table of the lake with engine=duckdb."
        )
    if flavour.backtracks:
        _check_effort(pattern)
    return f"{flavour.ignore_case if ignore_case else ''}{flavour.start}(?:{body}){flavour.end}"


def _check_effort(pattern: str) -> None:
    body = "".join(_rewrite(pattern.removeprefix("(?i)"), RE2))
    try:
        check_effort(body, ignore_case=pattern.startswith("(?i)"))
    except TooMuchEffort as bad:
        raise NotPortable(f"{bad} Or read a table of the lake with engine=duckdb.") from None


def _nested_repetition(pattern: str) -> str:
    """The first group that is repeated and holds a repetition of no fixed number; empty: there is none. RE2 has read the pattern."""
    starts, varies, group = [0], [False], ""
    """Of each open group where it starts and whether it holds such a repetition; the group that has just ended with one."""
    for match in _ATOM.finditer(pattern):
        atom = match.group()
        if atom in ("(", "(?:"):
            starts.append(match.start())
            varies.append(False)
            group = ""
        elif atom == ")":
            group = pattern[starts.pop() : match.end()] if varies.pop() else ""
            varies[-1] |= bool(group)
        elif atom in ("*", "+", "?") or (atom[0] == "{" and len(atom) > 1):
            if group and atom != "?":
                return group + atom
            varies[-1] |= atom[0] != "{" or "," in atom
        else:
            group = ""
    return ""


def _check_by_re2(pattern: str) -> None:
    try:
        pc.match_substring_regex(pa.array([""]), pattern=pattern)
    except pa.ArrowInvalid as bad:
        raise NotPortable(f"`{pattern}` is no regular expression: {str(bad).splitlines()[0]}") from None


def _rewrite(pattern: str, flavour: RegexFlavour) -> Iterator[str]:
    in_class = False
    for piece in _TOKEN.findall(pattern):
        if in_class:
            in_class = piece != "]"
            yield _within_class(piece)
        elif piece[0] == "[":
            in_class = True
            yield piece[:-1] + r"\]" if piece.endswith("]") else piece
        else:
            yield _outside_class(piece, flavour)


def _within_class(piece: str) -> str:
    if piece in ("[", "[^", "[]", "[^]"):
        raise NotPortable(
            f"A `[` within a class is written \\[, and there are no classes such as [:alpha:]: `{piece}`."
        )
    if piece[0] == "\\":
        return _CHARACTER_CLASSES.get(piece[1]) or _rewrite_escape(piece)
    return "\\" + piece if piece in "&~|" else piece


def _outside_class(piece: str, flavour: RegexFlavour) -> str:
    if piece == ".":
        return r"[^\n]"
    if piece in ("^", "$"):
        return flavour.start if piece == "^" else flavour.end
    if piece.startswith("(?") and piece != "(?":
        raise NotPortable(f"`{piece}` is not understood by all engines; groups are ( ) and (?: ).")
    if piece[0] != "\\":
        return piece
    if piece[1] in _CHARACTER_CLASSES:
        return f"[{_CHARACTER_CLASSES[piece[1]]}]"
    if piece[1].lower() in _CHARACTER_CLASSES:
        return f"[^{_CHARACTER_CLASSES[piece[1].lower()]}]"
    return _rewrite_escape(piece)


def _rewrite_escape(piece: str) -> str:
    if piece[1].isalnum() and piece[1] not in _CONTROLS and not piece.startswith("\\x"):
        raise NotPortable(
            f"`{piece}` is not understood by all engines; of the escapes with a letter they share \\d \\w \\s \\t \\n \\r \\f."
        )
    if piece.startswith("\\x"):
        return re.escape(chr(int(piece[2:], 16)))
    return piece


def pattern_matches(written_for_re2: str, value: str) -> bool:
    """In time that grows with the value only, whatever the pattern."""
    return bool(pc.match_substring_regex(pa.scalar(value), pattern=written_for_re2).as_py())
