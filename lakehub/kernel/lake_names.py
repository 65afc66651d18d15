"""Names of columns in the lake: what each reader of its tables takes, of which the strictest reads Avro's letters as ASCII."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

LAKE_NAME_RULE = (
    "names there have the letters A to Z, digits and _ only, begin with no digit, differ by more than their case, and do not begin "
    "with _hoodie_ or _lakehub_"
)
_LAKE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
OWN_PREFIXES = ("_hoodie_", "_lakehub_")
"""Of columns that the lake's table format, and Lakehub, write for themselves: no column of anybody's."""
_MAX_NAMED = 3


def names_unfit_for_the_lake(names: Iterable[str]) -> tuple[str, ...]:
    """Those that no table of the lake can have, or not beside the ones before them: Spark takes `Id` and `id` for one."""
    taken: set[str] = set()
    unfit = []
    for name in names:
        folded = name.casefold()
        if not _LAKE_NAME.fullmatch(name) or folded.startswith(OWN_PREFIXES) or folded in taken:
            unfit.append(name)
        taken.add(folded)
    return tuple(unfit)


def names_fit_for_the_lake(names: Collection[str], known_names: Collection[str] = ()) -> tuple[str, ...]:
    """Those of `names` that a table which has the columns `known_names` holds or can get, in their order."""
    unfit = {*names_unfit_for_the_lake(dict.fromkeys((*known_names, *names)))}
    return tuple(name for name in names if name not in unfit)


def unfit_names_text(names: Iterable[str]) -> str:
    """The sentence about some that are unfit: which, and why."""
    unfit = tuple(names)
    named = ", ".join(f"`{name}`" for name in unfit[:_MAX_NAMED])
    more = f" and {len(unfit) - _MAX_NAMED} more" if len(unfit) > _MAX_NAMED else ""
    return f"The lake cannot hold the columns {named}{more}: {LAKE_NAME_RULE}."
