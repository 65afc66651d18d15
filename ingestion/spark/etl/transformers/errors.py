"""What is told of an error of a transformer: its class and the line. Its words, which may have values of rows, are for the log: errors of runs are seen by everybody who is signed in."""

from __future__ import annotations

import re
import sys
import traceback
from pathlib import PurePath
from typing import Any

from py4j.protocol import Py4JJavaError

from ingestion.spark.etl.row_errors import raised_in_python

_MAX_LENGTH = 200
_PLACE = re.compile(r'^\s*File "([^"/\\<>]+\.py)", line (\d+)', re.MULTILINE)
"""Files of transformers have no folder in a traceback."""


class BadTransformer(RuntimeError):
    """A transformer did what it may not; the message has its name."""


def error_place(problem: BaseException) -> str:
    """Such as `fares.py:12: ValueError`. The words go to the log."""
    text = str(problem)
    print(text, file=sys.stderr)
    if raised := raised_in_python(text):
        places = _PLACE.findall(raised.frames)
        place = f"{places[-1][0]}:{places[-1][1]}: " if places else ""
        return f"{place}{raised.kind}"[:_MAX_LENGTH]
    kind = java_class(problem)[0] if isinstance(problem, Py4JJavaError) else type(problem).__name__
    places = [
        frame
        for frame in traceback.extract_tb(problem.__traceback__)
        if PurePath(frame.filename).name == frame.filename
    ]
    place = f"{places[-1].filename}:{places[-1].lineno}: " if places else ""
    return f"{place}{kind}"[:_MAX_LENGTH]


def java_class(problem: Py4JJavaError) -> tuple[str, Any]:
    """The name of the innermost error's class, and the error."""
    cause = problem.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    return str(cause.getClass().getName()), cause
