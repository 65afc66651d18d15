"""A dimension test: its assertion holds or not for each value of a column, and one group that fails fails the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakehub.kernel.outcome import Outcome
from quality.domain.expression import THIS, Name
from quality.domain.expression.measures import ROWS, Answer, Ask, of_no_rows
from quality.domain.expression.naming import is_grouped
from quality.domain.expression.nodes import Parameters
from quality.domain.expression.values import Failed

LEAST_ROWS = 30
MOST_GROUPS = 100
LISTED = 20
SIZES = Ask(Name(THIS), ROWS)
"""How many rows each group has; a dimension test asks for it whatever it asserts."""


@dataclass(frozen=True)
class Group:
    """One value of the column (None: nulls), with what was found in its rows."""

    name: str | None
    rows: int
    outcome: Outcome
    observed: str = ""
    behind: str = ""
    cause: str = ""


@dataclass(frozen=True)
class Groups:
    """What became of the groups of a column; `failing` are the first of those that failed, the worst first."""

    by: str
    tested: int
    failed: int
    errors: int
    no_data: int
    too_small: int
    over_cap: int
    failing: tuple[Group, ...] = ()


@dataclass(frozen=True)
class Choice:
    """The groups that are large enough, largest first, and how many are not tested for which reason."""

    sizes: Mapping[str | None, int]
    too_small: int
    over_cap: int


def most_of(parameters: Parameters) -> int:
    return MOST_GROUPS if parameters.most is None else parameters.most


def chosen(rows: Mapping[str | None, int], parameters: Parameters, groups: int = 0) -> Choice:
    """`rows` are those of the largest groups; there are `groups` in all, of which the others are no larger."""
    least = LEAST_ROWS if parameters.least is None else parameters.least
    most = most_of(parameters)
    large = sorted(
        ((name, count) for name, count in rows.items() if count >= max(1, least)),
        key=lambda group: (-group[1], group[0] is not None, group[0] or ""),
    )
    unlisted = max(0, groups - len(rows))
    all_large = len(large) == len(rows)
    return Choice(
        sizes=dict(large[:most]),
        too_small=len(rows) - len(large) + (0 if all_large else unlisted),
        over_cap=max(0, len(large) - most) + (unlisted if all_large else 0),
    )


def answers_of(group: str | None, answers: Mapping[Ask, Answer | Failed]) -> dict[Ask, Answer | Failed]:
    """What was measured of one group; a group that a table lacks has no rows there."""
    return {ask: _share_of(group, ask, answer) for ask, answer in answers.items()}


def grouped(by: str, choice: Choice, found: Sequence[Group]) -> Groups:
    """`found` are the groups that were tested, the worst first."""
    counts = Counter(group.outcome for group in found)
    failing = [group for group in found if group.outcome is Outcome.FAIL]
    return Groups(
        by=by,
        tested=len(found),
        failed=len(failing),
        errors=counts[Outcome.ERROR],
        no_data=counts[Outcome.NO_DATA],
        too_small=choice.too_small,
        over_cap=choice.over_cap,
        failing=tuple(failing[:LISTED]),
    )


def named(group: str | None) -> str:
    """For people."""
    return "no value" if group is None else group


def _share_of(group: str | None, ask: Ask, answer: Answer | Failed) -> Answer | Failed:
    if not is_grouped(ask) or not isinstance(answer, Mapping):
        return answer
    return answer[group] if group in answer else of_no_rows(ask.measure)
