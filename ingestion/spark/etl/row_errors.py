"""What is told of an error of Spark in a job of a pipeline: its condition and class, and where in the SELECT. Its words, which may have values of rows, are for the log, as those of transformers are: errors of runs are seen by everybody who is signed in."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, ParseException, PySparkException, PythonException
from pyspark.sql import SparkSession

_TRACEBACK = "Traceback (most recent call last):"
_CLASS = re.compile(r"[^\W\d][\w.]*")
_MAX_FRAGMENT = 100
_OWN_MODULES = ("ingestion.", "lakehub.", "quality.")
_WRAPPERS = re.compile(r"TASK_WRITE_FAILED|_LEGACY_ERROR_TEMP_\d+")
"""Conditions that say nothing of what is wrong: what they wrap does, or nobody has named it yet."""
_ABOUT_FILES = re.compile(
    r"(java\.io\.|org\.apache\.spark\.Spark)FileNotFoundException: .+|java\.nio\.file\.\w+: .+|java\.io\.IOException: No space left on device"
)
_ABOUT_MEMORY = re.compile(
    r"java\.lang\.OutOfMemoryError: .+|org\.apache\.spark\.memory\.SparkOutOfMemoryError: .+"
    r"|org\.apache\.spark\.SparkException: (Could not execute broadcast in|Not enough memory to build and broadcast|Cannot broadcast the table) .+"
)
_ABOUT_MACHINES = re.compile(r"ExecutorLostFailure \(.+|Total size of serialized results .+|Job \d+ cancelled.*")
"""In the words of an error that no task has raised."""
_IN_LOG = "The message may contain values of rows, so it is only in the log of the worker."
_REMEDY = (
    f"{_IN_LOG} If the SELECT cannot be computed for some rows, leave them out (WHERE), "
    "or use functions that return NULL for them, such as `try_cast`, `try_divide` and `try_to_number`."
)


@dataclass(frozen=True)
class Thrown:
    """An error of Java: the name of its class, its words, Spark's name of the condition, and the part of the query that is about; empty: it has none."""

    kind: str
    words: str
    condition: str = ""
    fragment: str = ""


def error_without_rows(problem: Exception, spark: SparkSession) -> str | None:
    """None: its words have no values of rows, as it was raised before any was read, or by what is no query."""
    if isinstance(problem, AnalysisException | ParseException):
        return None
    if isinstance(problem, PySparkException) and getattr(problem, "_origin", None) is None:
        return _without_java(problem)
    chain = [*_chain(problem, spark)]
    return describe(chain) if chain else None


def has_own_words(problem: BaseException) -> bool:
    """Whether Lakehub has written what it says, or it is about files, the network or memory. Whatever else Python raises may repeat a value, as `int(value)` does."""
    return _is_of_machine(type(problem)) or _is_own(f"{type(problem).__module__}.")


def _is_of_machine(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, OSError | MemoryError)


def _is_own(name: str) -> bool:
    """`name`: of a class, with its module."""
    return name.startswith(_OWN_MODULES)


def _without_java(problem: PySparkException) -> str:
    """Of an error of PySpark, or of a task in Python."""
    raised = raised_in_python(str(problem)) if isinstance(problem, PythonException) else None
    if raised is not None and (_is_own(raised.kind) or _is_of_machine(getattr(builtins, raised.kind, None))):
        return raised.line
    return bug_without_rows(problem) if raised is None else f"{raised.kind}: {_IN_LOG}"


def bug_without_rows(problem: Exception) -> str:
    return f"{type(problem).__name__}: {_IN_LOG}"


def describe(chain: Sequence[Thrown]) -> str:
    """`chain`: each with its cause after it, at least one."""
    innermost = chain[-1]
    about = _ABOUT_FILES.fullmatch(innermost.words) or (
        _ABOUT_MACHINES.search(innermost.words) if len(chain) == 1 else None
    )
    about = about or next(filter(None, (_ABOUT_MEMORY.fullmatch(each.words) for each in chain)), None)
    if about is not None:
        return about[0]
    conditions = [each.condition for each in chain if each.condition and not _WRAPPERS.fullmatch(each.condition)]
    fragments = [each.fragment for each in chain if each.fragment]
    condition = [f"[{conditions[-1]}]"] if conditions else []
    place = [f"at `{_shortened(fragments[-1])}` in the SELECT"] if fragments else []
    about_query = f" {' '.join((*condition, *place))}." if condition or place else ""
    return f"{innermost.kind}:{about_query} {_REMEDY}"


def _shortened(fragment: str) -> str:
    text = " ".join(fragment.split())
    return text if len(text) <= _MAX_FRAGMENT else f"{text[:_MAX_FRAGMENT]}…"


def _chain(problem: Exception, spark: SparkSession) -> Iterator[Thrown]:
    """Empty where it is none of Java."""
    error: Any = problem.java_exception if isinstance(problem, Py4JJavaError) else getattr(problem, "_origin", None)
    gateway: Any = spark.sparkContext._gateway
    while error is not None:
        is_sparks = is_instance_of(gateway, error, "org.apache.spark.SparkThrowable")
        contexts = [*error.getQueryContext()] if is_sparks else []
        yield Thrown(
            str(error.getClass().getName()),
            str(error.toString()).partition("\n")[0],
            (is_sparks and error.getErrorClass()) or "",
            str(contexts[0].fragment()) if contexts else "",
        )
        error = error.getCause()


class RaisedInPython(NamedTuple):
    """`frames`: the lines before it. `kind`: its class, with the module unless that is `builtins`. `line`: the class and the first line of its words."""

    frames: str
    kind: str
    line: str


def raised_in_python(text: str) -> RaisedInPython | None:
    """Of the last traceback in `text`. None: it has none. What follows the line is left out: words may have more lines, and a value of a row on each."""
    _, traceback, after = text.rpartition(_TRACEBACK)
    if not traceback:
        return None
    frames = list[str]()
    for line in after.splitlines():
        if line[:1].strip():  # all lines of frames are indented
            kind = line.partition(":")[0]
            return RaisedInPython("\n".join(frames), kind, line) if _CLASS.fullmatch(kind) else None
        frames.append(line)
    return None
