"""`transform.sql`: one SELECT over the inputs, looked at before it runs."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from sqlglot import exp

from ingestion.domain.pipelines.problems import Problem
from ingestion.domain.pipelines.table_file import parser_problem
from lakehub.user_sql import BadQuery
from lakehub.user_sql.checked_select import check_select, line_of
from lakehub.user_sql.rendered_sql import render_sql
from lakehub.user_sql.sql_text import UnreadableSql, parse_statements

TRANSFORM_FILE = "transform.sql"
_SOURCE_MARK = re.compile(r"<\s*SRC\s*>", re.IGNORECASE)
_TEXT_OR_MARK = re.compile(
    rf"""[rR](?:'[^']*'|"[^"]*")|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/|{_SOURCE_MARK.pattern}""",
    re.IGNORECASE | re.DOTALL,
)
"""The mark, or a text, a name or a comment, in which it stands for itself."""
_MOVING = (exp.CurrentDate, exp.CurrentTime, exp.CurrentTimestamp, exp.CurrentDatetime, exp.Rand)
_UNORDERED = (
    exp.First,
    exp.Last,
    exp.FirstValue,
    exp.LastValue,
    exp.AnyValue,
    exp.ArrayAgg,
    exp.ArrayUniqueAgg,
    exp.GroupConcat,
    exp.Mode,
)
_MOVING_NAMES = frozenset({"current_date", "current_time", "current_timestamp", "localtimestamp"})
"""Of columns, for which Spark takes the clock where no table has one."""
_MOVING_TEXTS = frozenset({"now", "today", "yesterday", "tomorrow"})


def read_transform_file(text: str, source: str, inputs: Collection[str], problems: list[Problem]) -> str:
    """The SELECT, with the name of the source in place of `<SRC>`, written anew from the tree that was looked at. What is wrong is added to `problems`."""
    named = _with_source(text, source)
    try:
        parse_statements(named, "spark")
        tree = check_select(named, "spark", {name.lower() for name in inputs})
        text = render_sql(tree, "spark", str)
    except UnreadableSql as unreadable:
        problems.append(parser_problem(TRANSFORM_FILE, unreadable))
    except BadQuery as bad:
        problems.append(Problem(TRANSFORM_FILE, bad.line, str(bad)))
    else:
        problems += _moving_problems(tree)
        problems += _unordered_problems(tree)
        problems += _unread_problems(tree, inputs)
        return text
    return ""


def mark_problems(text: str, source: str) -> Iterator[Problem]:
    if _with_source(text, source) == text:
        yield Problem(
            TRANSFORM_FILE,
            0,
            f"`<SRC>` is missing: write `FROM <SRC>` where the query reads the source `{source}`.",
        )


def _with_source(text: str, source: str) -> str:
    return _TEXT_OR_MARK.sub(lambda match: f"`{source}`" if _SOURCE_MARK.fullmatch(match[0]) else match[0], text)


def line_naming(text: str, name: str) -> int:
    """The first in which the file names a column so, from 1 on; 0: none."""
    try:
        tree = parse_statements(_SOURCE_MARK.sub("src", text), "spark")[0]
    except UnreadableSql:
        return 0
    lines = (line_of(each) for each in tree.find_all(exp.Identifier) if each.name.casefold() == name.casefold())
    return min(lines, default=0)


def _moving_problems(tree: exp.Query) -> list[Problem]:
    """The same rows have to make the same result, whenever they are read."""
    moving: list[exp.Expr] = [*tree.find_all(*_MOVING)]
    moving += [
        column for column in tree.find_all(exp.Column) if not column.table and column.name.lower() in _MOVING_NAMES
    ]
    moving += [
        literal
        for literal in tree.find_all(exp.Literal)
        if literal.is_string and str(literal.this).strip().lower() in _MOVING_TEXTS
    ]
    return _problems_of(
        moving,
        "changes with the clock or by chance, so a table that holds it is wrong a moment later. Use a column of the inputs.",
    )


def _problems_of(nodes: Iterable[exp.Expr], what: str) -> list[Problem]:
    """Each line's once."""
    places = {(line_of(node), node.sql("spark")) for node in nodes}
    return [Problem(TRANSFORM_FILE, line, f"{each} {what}") for line, each in sorted(places)]


def _unordered_problems(tree: exp.Query) -> list[Problem]:
    """Their result goes by the order in which rows are read, which is another one each time."""
    return _problems_of(
        (node for node in tree.find_all(*_UNORDERED) if not _is_ordered(node)),
        "takes rows in whatever order they are read, so it has another value each time: use min, max, or min_by and max_by.",
    )


def _is_ordered(node: exp.Expr) -> bool:
    """`first_value(x) OVER (PARTITION BY ... ORDER BY ...)` goes by that order."""
    window = node.find_ancestor(exp.Window)
    return (
        isinstance(node, exp.FirstValue | exp.LastValue | exp.First | exp.Last)
        and window is not None
        and window.args.get("order") is not None
    )


def _unread_problems(tree: exp.Query, inputs: Collection[str]) -> list[Problem]:
    read = {table.name.lower() for table in tree.find_all(exp.Table)}
    return [
        Problem(TRANSFORM_FILE, 0, f"The input `{name}` is not read: remove it from the inputs, or join it.")
        for name in inputs
        if name.lower() not in read
    ]
