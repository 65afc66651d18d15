"""An expression that is wrong says where, why, and what was probably meant; before anything runs."""

from __future__ import annotations

import pytest

from quality.domain.language import ExpressionError, Scope, understand

SCOPE = Scope(
    tables={"this": frozenset({"tailnum", "delay"}), "planes": frozenset({"tailnum"})},
    data_centers=frozenset({"dc1", "dc2"}),
    engines=frozenset({"duckdb", "spark"}),
)


def error_of(text: str, scope: Scope = SCOPE) -> ExpressionError:
    with pytest.raises(ExpressionError) as caught:
        understand(text, scope)
    return caught.value


def test_the_place_is_shown_with_a_caret() -> None:
    assert str(error_of("rows(this) >> 3")).splitlines()[1:] == ["  rows(this) >> 3", "              ^"]


def test_lines_and_columns_count_from_one() -> None:
    error = error_of("rows(this) > 1\n and fresness(this) < 2h")
    assert (error.line, error.column) == (2, 6)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("fresness(this) < 2h", "There is no function `fresness`. Did you mean `freshness`?"),
        ("rows(plane) > 1", "There is no dataset `plane`. Did you mean `planes`?"),
        ("rows(this@dc3) > 1", "There is no data center `dc3`. Did you mean"),
        ("nulls(this.tialnum) == 0", "has no column `tialnum`. Did you mean `tailnum`?"),
        ("distinct(planes, tail) > 1", "`planes` has no column `tail`. Did you mean `tailnum`?"),
        ("unmatched(this.tailnum, planes.tailnumb) == 0", "no column `tailnumb`"),
        ("rows(this) > 1 with engin=spark", "There is no parameter `engin`. Did you mean `engine`?"),
        ("rows(this) > 1 with engine=sparc", "`engine` cannot be `sparc`. Did you mean `spark`?"),
        ("rows(this) > 1 with sustain=spark", "`sustain` wants a duration such as 30m, not `spark`"),
        ("rows(this) / rows(upstream) > 1%", "It has no upstream."),
        ("duplicates(this) < 1%", "No primary key is known here"),
        ("across_partitions(this, id) == 0", "looks at the whole table: write `with partition=whole`"),
        ("rows(this", "The expression ends too early"),
        ("", "The expression ends too early"),
        ("rows(this) > 1 $", "`$` is not expected here"),
        ("rows(this) > 2x", "is not expected here"),
        ("min(this.delay) > 3", "of a column it is minimum(table.column)"),
        ("this > 3", "`this` is a name, not a value"),
        ("rows(1) > 3", "The name of a table or column is wanted"),
        ("rows(this.delay) > 3", "A table is wanted, not the column `delay`"),
        ("nulls(this) > 3", "A column is wanted"),
        ("distinct(this) > 3", "1 arguments, 2 to 33 wanted"),
        ("1 < 2", "The test measures nothing"),
        ("rows(this)", "this is only a count"),
        ("abs(rows(this), 1) > 2", "`abs` takes 1 arguments, not 2"),
    ],
)
def test_it_names_the_thing_and_the_remedy(text: str, says: str) -> None:
    assert says in str(error_of(text))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("rows(this) / rows(planes) > 0.999", "write the threshold in percent"),
        ("rows(this) > 99.9%", "divide it first"),
        ("freshness(this) < 2", "write it with its unit"),
        ("freshness(this) + rows(this) < 2h", "cannot be added"),
        ("freshness(this) * freshness(this) < 2h", "has no meaning"),
        ("rows(this) / freshness(this) < 2", "has no meaning"),
        ("(rows(this) > 1) == true", "they are not compared"),
        ("not rows(this)", "this is a count"),
        ("(rows(this) > 1) + 1 > 2", "true and false cannot be added"),
    ],
)
def test_kinds_that_do_not_fit_are_refused(text: str, says: str) -> None:
    assert says in str(error_of(text))
