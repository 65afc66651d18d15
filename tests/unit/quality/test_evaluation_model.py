"""Evaluation against a model that is slow and obvious: a tree of Python numbers, one group at a time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import TypeAlias
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from lakehub.kernel.interval import Interval
from lakehub.kernel.outcome import Outcome
from lakehub.kernel.partitions import Grain
from quality.domain.evaluation.evaluate import asks_of_expression, evaluate
from quality.domain.evaluation.groups import GROUP_SIZES
from quality.domain.language import Call, Expression, Literal, Name, Node, flattened, parse
from quality.domain.language.measures import Ask
from quality.domain.language.tree.nodes import Parameters
from quality.domain.language.values import EvaluationContext, Failed, error
from quality.domain.value_types import ValueType

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
DAY = timedelta(days=1)
UTC_ZONE = ZoneInfo("UTC")
NO_DATA, ERROR = "no data", "error"
Worth: TypeAlias = Fraction | bool | str

names = st.builds(
    Name, st.sampled_from(["this", "upstream"]), shift=st.sampled_from([0, -1, -7]).map(lambda days: days * DAY)
)
leaves = names.map(lambda name: Call("rows", (name,)))
numbers = st.integers(0, 9).map(lambda value: Literal(Fraction(value), ValueType.NUMBER))
ARITHMETIC = {"add": 2, "sub": 2, "mul": 2, "neg": 1, "abs": 1, "min": 3, "max": 2, "average": 3}
COMPARED = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}


def _calls(arities: Mapping[str, int], children: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    def of(name: str) -> st.SearchStrategy[Node]:
        return st.tuples(*[children] * arities[name]).map(lambda args: Call(name, args))

    return st.sampled_from(sorted(arities)).flatmap(of)


counted: st.SearchStrategy[Node] = st.recursive(leaves | numbers, lambda inner: _calls(ARITHMETIC, inner), max_leaves=6)
ratios = st.tuples(leaves, leaves).map(lambda sides: Call("div", sides))
comparisons = _calls(dict.fromkeys(COMPARED, 2), counted) | _calls(dict.fromkeys(COMPARED, 2), ratios)
assertions = st.recursive(comparisons, lambda inner: _calls({"and": 2, "or": 2, "not": 1}, inner), max_leaves=4)
answers = st.one_of(st.integers(0, 3), st.just(error("broken")))
YESTERDAY, TODAY = (Interval(at, at + DAY) for at in (NOW.replace(hour=0) - DAY, NOW.replace(hour=0)))
moments = st.builds(
    lambda partition, awaited, since, after: EvaluationContext(
        NOW, Grain.DAY, UTC_ZONE, since, partition, due_after=after, awaited=frozenset({partition} if awaited else ())
    ),
    st.sampled_from([YESTERDAY, TODAY]),
    st.booleans(),
    st.sampled_from([None, YESTERDAY.start, YESTERDAY.start - 3 * DAY]),
    st.sampled_from([timedelta(), 13 * timedelta(hours=1)]),
)


def full_upstream(rows: Mapping[Ask, int | Failed]) -> set[timedelta]:
    """The days of which upstream holds rows, as shifts."""
    upstream = {ask.table.shift: count for ask, count in rows.items() if ask.table.dataset == "upstream"}
    return {shift for shift, count in upstream.items() if not isinstance(count, Failed) and count > 0}


def is_expected(moment: EvaluationContext, shift: timedelta, awaited: set[timedelta]) -> bool:
    """A day that is known to have held rows, that upstream has, or that is watched and due: it ended as long ago as it may take."""
    if shift in awaited:
        return True
    end = moment.partition.end + shift
    watched = moment.monitored_since is None or moment.monitored_since < end
    return (moment.partition in moment.awaited and not shift) or (watched and end + moment.due_after <= NOW)


def model(node: Node, rows: Mapping[Ask, int | Failed], moment: EvaluationContext, awaited: set[timedelta]) -> Worth:
    """Both sides are always looked at; an error says more than missing data. No rows are 0 where some are expected."""
    if isinstance(node, Literal):
        assert isinstance(node.value, Fraction)
        return node.value
    assert isinstance(node, Call)
    if node.function == "rows":
        (name,) = node.args
        assert isinstance(name, Name)
        row_count = next(count for ask, count in rows.items() if ask.table == name)
        if isinstance(row_count, Failed):
            return ERROR
        return Fraction(row_count) if row_count or is_expected(moment, name.shift, awaited) else NO_DATA
    args = [model(arg, rows, moment, awaited) for arg in node.args]
    for failed in (ERROR, NO_DATA):
        if failed in args:
            return failed
    words = {"div": "a / b", "add": "a + b", "sub": "a - b", "mul": "a * b", "neg": "-a", "abs": "abs(a)",
             "min": "min(args)", "max": "max(args)", "average": "sum(args) / Fraction(len(args))",
             "and": "a and b", "or": "a or b", "not": "not a"}  # fmt: skip
    word = words.get(node.function) or f"a {COMPARED[node.function]} b"
    if node.function == "div" and args[-1] == 0:
        return NO_DATA
    worth: Worth = eval(word, {"Fraction": Fraction}, {"a": args[0], "b": args[-1], "args": args})
    return worth


def outcome(worth: Worth) -> Outcome:
    return {True: Outcome.PASS, False: Outcome.FAIL, NO_DATA: Outcome.NO_DATA, ERROR: Outcome.ERROR}[worth]


@given(assertions, moments, st.data())
def test_it_comes_out_as_in_the_model(assertion: Node, moment: EvaluationContext, data: st.DataObject) -> None:
    expression = Expression(assertion)
    rows = {ask: data.draw(answers) for ask in asks_of_expression(expression)}
    evaluation = evaluate(parse(flattened(expression)), rows, moment)
    assert evaluation.outcome is outcome(model(assertion, rows, moment, full_upstream(rows)))
    assert (evaluation.cause == "") is (evaluation.outcome in (Outcome.PASS, Outcome.FAIL))


simple = _calls(dict.fromkeys(COMPARED, 2), leaves | numbers).filter(
    lambda node: isinstance(node, Call) and any(isinstance(arg, Call) for arg in node.args)
)
groups = st.dictionaries(st.sampled_from(["a", "b", "c", None]), st.integers(0, 9), min_size=3)


@given(simple, st.integers(0, 3), st.integers(1, 4), moments, st.data())
def test_a_dimension_test_is_the_test_of_each_group(
    assertion: Node, least: int, most: int, moment: EvaluationContext, data: st.DataObject
) -> None:
    """The groups are those of all the sides that are compared: what vanished from one counts as 0 there."""
    by = Expression(assertion, Parameters(by="origin", least=least, most=most))
    grouped = {ask: data.draw(groups) for ask in asks_of_expression(by)}
    evaluation = evaluate(by, grouped, moment)
    assert GROUP_SIZES in grouped
    everywhere = {name for rows in grouped.values() for name in rows}
    largest = {name: max(rows.get(name, 0) for rows in grouped.values()) for name in everywhere}
    sizes = sorted(
        ((count, name) for name, count in largest.items() if count >= max(1, least)),
        key=lambda group: (-group[0], group[1] is not None, group[1] or ""),
    )
    awaited = full_upstream({ask: sum(rows.values()) for ask, rows in grouped.items()})
    each = [
        outcome(model(assertion, {ask: rows.get(name, 0) for ask, rows in grouped.items()}, moment, awaited))
        for _, name in sizes[:most]
    ]
    speaking = [
        group_outcome for group_outcome in (Outcome.FAIL, Outcome.NO_DATA, Outcome.PASS) if group_outcome in each
    ]
    assert evaluation.outcome is (speaking[0] if speaking else Outcome.NO_DATA)
    assert evaluation.groups is not None
    assert (evaluation.groups.tested, evaluation.groups.failed) == (len(each), each.count(Outcome.FAIL))
    assert evaluation.groups.over_cap == max(0, len(sizes) - most)
