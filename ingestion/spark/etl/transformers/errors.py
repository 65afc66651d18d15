"""What a person who wrote a transformer needs of an error: its own words and the line, without the stacks of Python and Java."""

from __future__ import annotations

import re
import traceback
from pathlib import PurePath

from py4j.protocol import Py4JJavaError

_MAX_LENGTH = 500
_TRACEBACK = "Traceback (most recent call last):"
_PLACE = re.compile(r'^\s*File "([^"/\\<>]+\.py)", line (\d+)', re.MULTILINE)
"""Files of transformers have no folder in a traceback."""


def error_words(problem: BaseException) -> str:
    text = str(problem)
    if _TRACEBACK in text:
        return _of_traceback(text)
    words = _java_words(problem) if isinstance(problem, Py4JJavaError) else text.splitlines()[0] if text else ""
    places = [
        frame
        for frame in traceback.extract_tb(problem.__traceback__)
        if PurePath(frame.filename).name == frame.filename
    ]
    place = f"{places[-1].filename}:{places[-1].lineno}: " if places else ""
    return f"{place}{type(problem).__name__}: {words}"[:_MAX_LENGTH].rstrip(" .:")


def _of_traceback(text: str) -> str:
    """Of the last one of Python in what Java tells: the error, and the line of the file that is a transformer's."""
    lines = text.rpartition(_TRACEBACK)[2].splitlines()
    inside = [line for line in _until_java(lines) if line.strip()]
    places = _PLACE.findall("\n".join(inside))
    place = f"{places[-1][0]}:{places[-1][1]}: " if places else ""
    return f"{place}{inside[-1].strip()}"[:_MAX_LENGTH].rstrip(" .:")


def _until_java(lines: list[str]) -> list[str]:
    ends = [number for number, line in enumerate(lines) if line.startswith("\tat ")]
    return lines[: ends[0]] if ends else lines


def _java_words(problem: Py4JJavaError) -> str:
    cause = problem.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    return str(cause.toString()).splitlines()[0]
