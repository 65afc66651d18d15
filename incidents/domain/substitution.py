"""The words of a message that people may edit: text with `{name}` in it, for documented names and nothing else.

There is no language behind the braces: no attributes, no indexes, no filters, no format specifications, no escapes. A
name is looked up once in a table of finished texts, and what comes out of the table is not looked at again. (Elsewhere
templates of notifications reached the objects behind the names: CVE-2026-22244.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from lakehub.kernel.suggest import did_you_mean

NAME = re.compile(r"\{([a-z_]+)\}")
_BRACED = re.compile(r"\{([^{}\n]*)\}?|\}")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def names(template: str) -> frozenset[str]:
    return frozenset(NAME.findall(template))


def problem(template: str, known: Iterable[str]) -> str:
    """Why the template cannot be used: the first brace that is no known name; empty where all are."""
    table = sorted(known)
    for found in _BRACED.finditer(template):
        whole, inside = found.group(), found.group(1)
        if NAME.fullmatch(whole) and inside in table:
            continue
        if NAME.fullmatch(whole):
            return f"There is no `{whole}`.{did_you_mean(inside, table)}"
        return (
            f"`{whole}` is no variable: braces hold one name from the list, such as {{{table[0]}}}, and nothing else."
        )
    return ""


def one_line(template: str, values: Mapping[str, str]) -> str:
    """For a subject: no line break comes through, neither of the template nor of a value."""
    return " ".join(_CONTROL.sub(" ", _filled(template, values)).split())


def text(template: str, values: Mapping[str, str]) -> str:
    """For a body: each value stays on its line, and a line that has nothing to say is left out."""
    lines = [_CONTROL.sub(" ", _filled(line, values)) for line in template.splitlines() if _says(line, values)]
    return "\n".join(line.rstrip() for line in lines).strip("\n")


def _says(line: str, values: Mapping[str, str]) -> bool:
    """A line without names, or with one that is not empty."""
    asked = names(line) & values.keys()
    return not asked or any(values[name].strip() for name in asked)


def _filled(template: str, values: Mapping[str, str]) -> str:
    """In one pass; what is no known name stays as it is written."""

    def value(found: re.Match[str]) -> str:
        said = values.get(found.group(1))
        return found.group() if said is None else " ".join(said.split())

    return NAME.sub(value, template)
