"""The words of a message that people may edit: text with `{name}` in it, for documented names and nothing else.

What may stand in braces is VARIABLES, one line each.

There is no language behind the braces: no attributes, no indexes, no filters, no format specifications, no escapes. A
name is looked up once in a table of finished texts, and what comes out of the table is not looked at again. (Elsewhere
templates of notifications reached the objects behind the names: CVE-2026-22244.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from lakehub.kernel.suggest import did_you_mean

MAX_SUBJECT_LENGTH = 300
VARIABLES = {
    "number": "of the incident",
    "occasion": "what happened, such as opened or resolved",
    "title": "what is wrong, in a line",
    "dataset": "its name",
    "tier": "0 (highest) to 5",
    "team": "that owns it",
    "category": "freshness, completeness, duplicates, consistency, ingestion or others",
    "severity": "critical, high, medium or low",
    "state": "of the incident",
    "observed": "what was observed, against what the test needs",
    "test": "the test that fails longest",
    "data": "the data that is affected, by data center",
    "since": "when the first failure was",
    "cause": "the likely cause: upstream, a late or failed run, a schema change",
    "cause_link": "where to look at it",
    "next": "when it is tested again",
    "eta": "when recovery is expected",
    "assignee": "who has it",
    "resolution": "how it was resolved",
    "actor": "who did what is told",
    "text": "what they said",
    "link": "the page of the incident",
}
DEFAULT_SUBJECT = "[{occasion}] {title}"
DEFAULT_BODY = """{title}

Dataset: {dataset}, tier {tier}, team {team}
Category: {category}, severity {severity}
Observed: {observed}
Data: {data}
Since: {since}
Likely cause: {cause} {cause_link}
State: {state}
By: {actor}
Resolved: {resolution}
Why: {text}
Recovery expected: {eta}
Next rerun: {next}

{link}"""
REQUIRED_LINES = {
    "dataset": "Dataset: {dataset}",
    "category": "Category: {category}",
    "observed": "Observed: {observed}",
    "data": "Data: {data}",
    "since": "Since: {since}",
    "cause": "Likely cause: {cause} {cause_link}",
    "link": "{link}",
}
"""What every message says: where a template leaves one out, its line stands below."""

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


def render_message(subject: str, body: str, values: Mapping[str, str]) -> tuple[str, str]:
    """Subject and body, Lakehub's own where they are empty; what every message says is never left out."""
    body = body or DEFAULT_BODY
    left_out = [line for name, line in REQUIRED_LINES.items() if name not in variables_in(body)]
    whole = "\n".join([body, "", *left_out]) if left_out else body
    return render_line(subject or DEFAULT_SUBJECT, values)[:MAX_SUBJECT_LENGTH], render_text(whole, values)


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
