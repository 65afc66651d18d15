"""The words of a message that people may edit: text with `{name}` in it, for documented names and nothing else.

There is no language behind the braces: no attributes, no indexes, no filters, no format specifications, no escapes. A
name is looked up once in a table of finished texts, and what comes out of the table is not looked at again. (Elsewhere
templates of notifications reached the objects behind the names: CVE-2026-22244.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from lakehub.kernel.suggest import did_you_mean

VARIABLE = re.compile(r"\{([a-z_]+)\}")
_BRACED = re.compile(r"\{([^{}\n]*)\}?|\}")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def variables_in(template: str) -> frozenset[str]:
    return frozenset(VARIABLE.findall(template))


def template_problem(template: str, known_names: Iterable[str]) -> str:
    """Why the template cannot be used: the first brace that is no known name; empty where all are."""
    table = sorted(known_names)
    for match in _BRACED.finditer(template):
        whole, inside = match.group(), match.group(1)
        if VARIABLE.fullmatch(whole) and inside in table:
            continue
        if VARIABLE.fullmatch(whole):
            return f"There is no `{whole}`.{did_you_mean(inside, table)}"
        return (
            f"`{whole}` is no variable: braces hold one name from the list, such as {{{table[0]}}}, and nothing else."
        )
    return ""


def render_line(template: str, values: Mapping[str, str]) -> str:
    """For a subject: no line break comes through, neither of the template nor of a value."""
    return " ".join(_CONTROL.sub(" ", _substitute(template, values)).split())


def render_text(template: str, values: Mapping[str, str]) -> str:
    """For a body: each value stays on its line, and a line that has nothing to say is left out."""
    lines = [
        _CONTROL.sub(" ", _substitute(line, values)) for line in template.splitlines() if _has_content(line, values)
    ]
    return "\n".join(line.rstrip() for line in lines).strip("\n")


def _has_content(line: str, values: Mapping[str, str]) -> bool:
    """A line without names, or with one that is not empty."""
    used_names = variables_in(line) & values.keys()
    return not used_names or any(values[name].strip() for name in used_names)


def _substitute(template: str, values: Mapping[str, str]) -> str:
    """In one pass; what is no known name stays as it is written."""

    def value(match: re.Match[str]) -> str:
        text = values.get(match.group(1))
        return match.group() if text is None else " ".join(text.split())

    return VARIABLE.sub(value, template)
