"""A dimension test: its assertion holds or not for each value of a column, and one group that fails fails the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakehub.kernel.outcome import Outcome
from quality.domain.language import THIS, Name
from quality.domain.language.measures import ROWS, Answer, Ask, answer_without_rows
from quality.domain.language.name_resolution import MAX_GROUPS, is_grouped
from quality.domain.language.tree.nodes import Parameters
from quality.domain.language.values import Failed, no_data

DEFAULT_MIN_ROWS = 30
DEFAULT_MAX_GROUPS = 100
MAX_LISTED_GROUPS = 20
GROUP_SIZES = Ask(Name(THIS), ROWS)
"""How many rows each group has; a dimension test asks for it whatever it asserts."""


@dataclass(frozen=True)
class GroupOutcome:
    """One value of the column (None: nulls), with what was found in its rows."""

    name: str | None
    rows: int
    outcome: Outcome
    observed: str = ""
    behind: str = ""
    cause: str = ""


@dataclass(frozen=True)
class GroupSummary:
    """What became of the groups of a column; `failing` are the first of those that failed, the worst first."""

    by: str
    tested: int
    failed: int
    errors: int
    no_data: int
    too_small: int
    over_cap: int
    failing: tuple[GroupOutcome, ...] = ()


@dataclass(frozen=True)
class GroupSelection:
    """The groups that are large enough, largest first, and how many are not tested for which reason."""

    sizes: Mapping[str | None, int]
    too_small: int
    over_cap: int


def select_groups(rows: Mapping[str | None, int], parameters: Parameters, groups: int = 0) -> GroupSelection:
    """`rows` are those of the largest groups; there are `groups` in all, of which the others are no larger."""
    least = DEFAULT_MIN_ROWS if parameters.least is None else parameters.least
    most = DEFAULT_MAX_GROUPS if parameters.most is None else parameters.most
    large = sorted(
        ((name, count) for name, count in rows.items() if count >= max(1, least)),
        key=lambda group: (-group[1], group[0] is not None, group[0] or ""),
    )
    unlisted = max(0, groups - len(rows))
    all_large = len(large) == len(rows)
    return GroupSelection(
        sizes=dict(large[:most]),
        too_small=len(rows) - len(large) + (0 if all_large else unlisted),
        over_cap=max(0, len(large) - most) + (unlisted if all_large else 0),
    )


def sizes_of_all_sides(answers: Mapping[Ask, Answer | Failed]) -> dict[str | None, int]:
    """The groups that any of the compared tables has, with the rows of the largest: one that vanished from this one counts.

    Left out are those that may be no larger than others of which nobody knows the size.
    """
    sides = [rows for ask, rows in answers.items() if ask.measure == ROWS and is_grouped(ask)]
    listed = [rows for rows in sides if isinstance(rows, Mapping)]
    sizes: dict[str | None, int] = {}
    for rows in listed:
        for name, count in rows.items():
            sizes[name] = max(count, sizes.get(name, 0))
    least = [(rows, min(rows.values())) for rows in listed if len(rows) > MAX_GROUPS]
    return {
        name: count
        for name, count in sizes.items()
        if all(name in rows or count > smallest for rows, smallest in least)
    }


def answers_of_group(group: str | None, answers: Mapping[Ask, Answer | Failed]) -> dict[Ask, Answer | Failed]:
    """What was measured of one group. A group that a table lacks has no rows there; unless the table has more groups than
    it was asked for: then it has as many as the smallest of these at most."""
    return {ask: _answer_of_group(group, ask, answer) for ask, answer in answers.items()}


def summarize_groups(by: str, choice: GroupSelection, outcomes: Sequence[GroupOutcome]) -> GroupSummary:
    """`outcomes` are those of the groups that were tested, the worst first."""
    counts = Counter(group.outcome for group in outcomes)
    failing = [group for group in outcomes if group.outcome is Outcome.FAIL]
    return GroupSummary(
        by=by,
        tested=len(outcomes),
        failed=len(failing),
        errors=counts[Outcome.ERROR],
        no_data=counts[Outcome.NO_DATA],
        too_small=choice.too_small,
        over_cap=choice.over_cap,
        failing=tuple(failing[:MAX_LISTED_GROUPS]),
    )


def group_label(group: str | None) -> str:
    """For people."""
    return "no value" if group is None else group


def _answer_of_group(group: str | None, ask: Ask, answer: Answer | Failed) -> Answer | Failed:
    if not is_grouped(ask) or not isinstance(answer, Mapping):
        return answer
    if group in answer:
        measured: Answer = answer[group]
        return measured
    # Bins are counted of all groups.
    if len(answer) > MAX_GROUPS and ask.measure.kind != "frequencies":
        return no_data(f"it is not among the {MAX_GROUPS:,} largest groups, and there are more")
    return answer_without_rows(ask.measure)
