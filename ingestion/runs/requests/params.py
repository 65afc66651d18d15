"""What each kind of job may be told, and of which form each parameter is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, TypeGuard

from ingestion.models import JobKind
from lakehub.kernel.errors import Refused
from lakehub.kernel.suggest import MAX_HINTS, did_you_mean

PARAMS_BY_KIND = {
    JobKind.BOOTSTRAP: ("replace", "from_chunks", "unaudited"),
    JobKind.INCREMENTAL: ("unaudited", "skip_to"),
    JobKind.BACKFILL: ("partitions", "keys", "unaudited"),
    JobKind.DELETE: ("partitions", "keys", "share"),
    JobKind.REPLAY: ("rows",),
    JobKind.CLUSTER: ("partitions", "planned"),
    JobKind.SET_POSITION: ("offsets", "may_skip", "why"),
    JobKind.DROP: (),
    JobKind.VERIFY_INDEX: ("sampled", "repairs"),
    JobKind.REBUILD_INDEX: (),
    JobKind.DROP_INDEX: (),
    JobKind.FOLLOW: (),
    JobKind.REPLICATE: (),
}
DECIDED = ("unaudited", "skip_to")
"""What only the decision over a refused batch of a pipeline gives (`ingestion.runs.modelled_tables.decisions`)."""
_NEEDS_DECISION = (
    "Only the decision over a refused batch of `{name}` gives this: on its page Pipeline, "
    "or by `POST /api/v1/datasets/{name}/refused-batches/{{number}}/decision`."
)
_MAX_SHOWN = 60
"""Characters of a name or a value that an error repeats."""


def check_params(kind: str, params: Mapping[str, Any]) -> None:
    """Raises Refused, by parameter, for what this kind of job does not know and for a value of another form."""
    problems = dict(_problems(JobKind(kind), params))
    if problems:
        raise Refused.for_fields(problems)


def refuse_decided(dataset: str, params: Mapping[str, Any]) -> None:
    """Raises Refused where somebody asks for what only a decision gives."""
    if problems := {name: _NEEDS_DECISION.format(name=dataset) for name in DECIDED if name in params}:
        raise Refused.for_fields(problems)


def _problems(kind: JobKind, params: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    known_names = PARAMS_BY_KIND[kind]
    unknown = [name for name in params if name not in known_names]
    for name in unknown[:MAX_HINTS]:
        near = did_you_mean(name, known_names)
        yield name, f"A job of the kind `{kind}` has no parameter `{name:.{_MAX_SHOWN}}`.{near}"
    for name in known_names:
        problem = _FORM_PROBLEMS[name](name, params[name]) if name in params else ""
        if problem:
            yield name, problem


def _boolean_problem(name: str, value: object) -> str:
    """`"false"` is a text, which Python takes for true."""
    if isinstance(value, bool):
        return ""
    return f"`{name}` is {_shown(value)}: give true or false, without quotes, or leave it out."


def _share_problem(name: str, value: object) -> str:
    """NaN is no share either."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1:
        return ""
    return f"`{name}` is {_shown(value)}: give a number above 0 and at most 1, without quotes, or leave it out."


def _count_problem(name: str, value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return ""
    return f"`{name}` is {_shown(value)}: give a whole number of rows."


def _offsets_problem(name: str, value: object) -> str:
    parts = [part for parts in value.values() for part in _values_of(parts)] if isinstance(value, dict) else [None]
    if all(isinstance(part, int) and not isinstance(part, bool) and part >= 0 for part in parts):
        return ""
    return f"`{name}` is {_shown(value)}: give by topic and partition the number of a message, 0 or more."


def _values_of(parts: object) -> list[object]:
    return [*parts.values()] if isinstance(parts, dict) else [None]


def _text_problem(name: str, value: object) -> str:
    return "" if isinstance(value, str) else f"`{name}` is {_shown(value)}: give a text."


def _names_problem(name: str, value: object) -> str:
    if _is_list(value) and all(isinstance(each, str) for each in value):
        return ""
    return f"`{name}` is {_shown(value)}: give a list of names, each a text."


def _positions_problem(name: str, value: object) -> str:
    if isinstance(value, dict) and all(isinstance(each, str) and each.isdigit() for each in value.values()):
        return ""
    return f"`{name}` is {_shown(value)}: give by input the completion of a commit."


def _keys_problem(name: str, value: object) -> str:
    """Without the value: keys of records are for members of the owning team, and an error of a run is not."""
    if _is_list(value) and all(_is_list(key) and key and all(map(_is_key_value, key)) for key in value):
        return ""
    return (
        f"`{name}` is not a list of keys: give each as a list of its values, texts or numbers, in the order of the record key, "
        'such as [["UA", "2026-11-16"]].'
    )


def _is_key_value(value: object) -> bool:
    """What is infinite or no number is no key, and no JSON that a database takes."""
    if isinstance(value, float) and not isfinite(value):
        return False
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _is_list(value: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, list | tuple)


def _shown(value: object) -> str:
    return f"{value!r:.{_MAX_SHOWN}}"


_FORM_PROBLEMS: Mapping[str, Callable[[str, Any], str]] = {
    "replace": _boolean_problem,
    "from_chunks": _boolean_problem,
    "planned": _boolean_problem,
    "partitions": _names_problem,
    "keys": _keys_problem,
    "share": _share_problem,
    "sampled": _share_problem,
    "repairs": _boolean_problem,
    "rows": _count_problem,
    "offsets": _offsets_problem,
    "may_skip": _boolean_problem,
    "why": _text_problem,
    "unaudited": _boolean_problem,
    "skip_to": _positions_problem,
}
"""What is wrong with a value, in a sentence; empty: nothing."""
