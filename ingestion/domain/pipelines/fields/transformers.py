"""`transformers`: a list of functions in Python and of classes of the JVM, in the order of the steps."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ingestion.domain.pipelines.definition import Transformer
from ingestion.domain.pipelines.yaml_nodes import Fields, Items, Text, Value
from lakehub.kernel.suggest import did_you_mean

MAX_TRANSFORMERS = 20
MAX_JARS = 10
"""Beside the one that has the class."""
MAX_PROPERTIES = 50
_MAX_PROPERTY = 1_000
"""Characters of a name, and of a value."""
_PYTHON, _JVM, _PROPERTIES, _JARS = "python", "jvm", "properties", "jars"
_FUNCTION = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}\.py:[A-Za-z_][A-Za-z0-9_]{0,99}")
_JAR = r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,149}\.jar"
_CLASS = re.compile(rf"{_JAR}:(?=.{{1,300}}$)[A-Za-z_$][A-Za-z0-9_$]*(\.[A-Za-z_$][A-Za-z0-9_$]*)*")
_FORMS = "`- python: fares.py:round_fares`, or `- jvm: fares.jar:com.example.RoundFares`"
Refuse = Callable[[int, str], None]
"""With a line."""


def read_transformers(value: Value | None, line: int, refuse: Refuse) -> Iterator[Transformer]:
    """`line`: of the field. What is wrong is told to `refuse`."""
    if value is not None and not isinstance(value, Items):
        refuse(value.line, "`transformers` is a list, in the order of the steps: `- python: fares.py:round_fares`.")
        return
    items = value.items if value else ()
    for each in items:
        if (transformer := _transformer(each, refuse)) is not None:
            yield transformer
    if len(items) > MAX_TRANSFORMERS:
        refuse(line, f"It has {len(items)} transformers, {MAX_TRANSFORMERS} at most.")


def _transformer(value: Value, refuse: Refuse) -> Transformer | None:
    fields = value.fields if isinstance(value, Fields) else {}
    allowed = (_JVM, _PROPERTIES, _JARS) if _JVM in fields else (_PYTHON,) if _PYTHON in fields else (_PYTHON, _JVM)
    if unknown := [name for name in fields if name not in allowed]:
        whose = (
            "function in Python" if allowed == (_PYTHON,) else "class of the JVM" if _JVM in fields else "transformer"
        )
        refuse(value.line, f"A {whose} has no field `{unknown[0]}`.{did_you_mean(unknown[0], allowed)}")
        return None
    kind, name = next(iter((kind, fields[kind]) for kind in (_PYTHON, _JVM) if kind in fields), ("", None))
    if not isinstance(name, Text):
        refuse(value.line, f"A transformer is a function in Python or a class of the JVM: write {_FORMS}.")
        return None
    if kind == _PYTHON and not _FUNCTION.fullmatch(name.text):
        refuse(
            name.line,
            f"`python` is {name.text[:80]!r}: write `fares.py:round_fares`, with a file that is in the operator's folder itself, and a function in it.",
        )
        return None
    if kind == _JVM and not _CLASS.fullmatch(name.text):
        refuse(
            name.line,
            f"`jvm` is {name.text[:80]!r}: write `fares.jar:com.example.RoundFares`, with a jar that is in the operator's folder itself, and a class in it.",
        )
        return None
    return Transformer(
        name.text, name.line, _properties(fields.get(_PROPERTIES), refuse), _jars(fields.get(_JARS), refuse)
    )


def _properties(value: Value | None, refuse: Refuse) -> tuple[tuple[str, str], ...]:
    if value is None:
        return ()
    given = value.fields if isinstance(value, Fields) else {}
    texts = tuple((name, each.text) for name, each in given.items() if isinstance(each, Text))
    if not given or len(texts) < len(given):
        refuse(value.line, "`properties` gives each name one text: `{fares.digits: 2}`.")
    elif len(texts) > MAX_PROPERTIES or any(
        not name or len(name) > _MAX_PROPERTY or len(text) > _MAX_PROPERTY for name, text in texts
    ):
        refuse(
            value.line,
            f"`properties` has {MAX_PROPERTIES} names at most, and no name or value of more than {_MAX_PROPERTY:,} characters.",
        )
    return texts


def _jars(value: Value | None, refuse: Refuse) -> tuple[str, ...]:
    if value is None:
        return ()
    names = tuple(each.text for each in value.items if isinstance(each, Text)) if isinstance(value, Items) else ()
    if (
        not names
        or len(names) > MAX_JARS
        or len(names) < len(value.items if isinstance(value, Items) else ())
        or not all(re.fullmatch(_JAR, name) for name in names)
    ):
        refuse(
            value.line,
            f"`jars` is a list of {MAX_JARS} jars at most that are in the operator's folder itself, such as `[rates.jar]`.",
        )
    return names
