"""Shifts, texts, groups, metrics and queries that are wrong say where, why, and what was probably meant."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lakehub.kernel.partitions import Grain
from quality.domain.language import ExpressionError, Scope, understand

SCOPE = Scope(
    tables={
        "this": frozenset({"tailnum", "delay", "origin"}),
        "upstream": frozenset({"tailnum", "delay"}),
        "planes": frozenset({"tailnum"}),
    },
    data_centers=frozenset({"dc1", "dc2"}),
    grains={"this": Grain.DAY, "upstream": Grain.DAY, "planes": Grain.NONE},
    metrics={"seats": "SELECT sum(seats) FROM this"},
)


def error_of(text: str) -> ExpressionError:
    with pytest.raises(ExpressionError) as caught:
        understand(text, SCOPE)
    return caught.value


@pytest.mark.parametrize(
    ("text", "says", "at"),
    [
        ("rows(this[7d]) > 1", "A shift looks back so many hours or days; write [-7d].", "7d"),
        ("rows(this[+7d]) > 1", "write [-7d]", "+7d"),
        ("rows(this[-7]) > 1", "write [-7d]", "-7"),
        ("rows(this[-90m]) > 1", "A shift is a whole number of hours or days, not `90m`.", "-90m"),
        ("rows(this[-0d]) > 1", "A shift is a whole number of hours or days, not `0d`.", "-0d"),
        ("rows(this[-9999w]) > 1", "A shift of `9999w` is too far; 3660d are the most.", "-9999w"),
        ("rows(this[-36h]) > 1", "The partitions are by day: shift by whole days, not by 1d12h.", "this[-36h]"),
        ("rows(planes[-1d]) > 1", "`planes` has no partitions, so none is earlier than another.", "planes[-1d]"),
        ("unmatched(this.tailnum, planes[-1d].tailnum) > 1", "`unmatched` looks at all partitions here", "planes[-1d].tailnum"),
        ("freshness(this[-1d]) < 2h", "`freshness` looks at all partitions here: it has no shift.", "this[-1d]"),
        ("rows(this[-1d]) > 1 with cadence=1h", "A test of the whole table has no earlier partition", "this[-1d]"),
        ("before(rows(this), 3600d) > 1 and before(rows(this[-1w]), 3660d) > 1", "is too far", "this[-1w]"),
        ("before(rows(this)) > 1", "A value and how long before is wanted", "before(rows(this))"),
        ("before(deviation(rows(this), 8w), 7d) > 1", "`deviation` looks back itself: it cannot be moved.", "deviation(rows(this), 8w)"),
        ("same_weekday(rows(this), 1.5) > 1", "a number of weeks, 1 to 52, is wanted", "same_weekday(rows(this), 1.5)"),
        ("average(this.delay) > 1", "of a column it is mean(table.column)", "average(this.delay)"),
        ("metric(seat) > 1", "There is no metric `seat`. Did you mean `seats`?", "seat"),
        ("metric(rows(this)) > 1", "The name of a metric is wanted", "metric(rows(this))"),
        ("deviation(rows(this), 3d) < 4", "It looks back one week at least", "3d"),
        ("deviation(rows(this), 4) < 4", "as in deviation(x, 8w)", "deviation(rows(this), 4)"),
        ("deviation(rows(this) > 1, 8w) < 4", "not a boolean", "deviation(rows(this) > 1, 8w)"),
        ("deviation(deviation(rows(this), 8w), 8w) < 4", "does not look at what itself looks back", "deviation(rows(this), 8w)"),
    ],
)  # fmt: skip
def test_looking_back(text: str, says: str, at: str) -> None:
    error = error_of(text)
    assert says in str(error)
    assert text[error.where.start : error.where.end] == at


@pytest.mark.parametrize(
    ("text", "says", "at"),
    [
        ("outside(this.delay, 9, 5) == 0", "Nothing lies from 9 up to 5: the lower bound is first.", "9"),
        ("outside(this.delay, -5, -9) == 0", "Nothing lies from -5 up to -9", "-5"),
        ("outside(this.delay, '2026-01-02', '2026-01-01') == 0", "from '2026-01-02' up to '2026-01-01'", "'2026-01-02'"),
        ("outside(this.delay, 1, '2026-01-01') == 0", "Both bounds are numbers, or both are dates.", "'2026-01-01'"),
        ("outside(this.delay, 'a', 'b') == 0", "A text such as 'a' has no range", "'a'"),
        ("outside(this.delay, 1, this) == 0", "A number, or a date or time in single quotes, is wanted here", "this"),
        ("outside(this.dleay, 1, 2) == 0", "has no column `dleay`. Did you mean `delay`?", "outside(this.dleay, 1, 2)"),
        ("mismatched(this.tailnum, 'N[0-9') == 0", "'N[0-9' is not a regular expression: unterminated character set at character 2.", "'N[0-9'"),
        ("mismatched(this.tailnum, '(?=N)x') == 0", "Not every engine knows `(?`", "'(?=N)x'"),
        (r"mismatched(this.tailnum, '(a)\1') == 0", r"Not every engine knows `\1`", r"'(a)\1'"),
        ("mismatched(this.tailnum, 5) == 0", "A regular expression in single quotes is wanted here", "5"),
        ("unexpected(this.tailnum, 'AA', 5) == 0", "The accepted values are all texts, or all numbers.", "5"),
        ("unexpected(this.tailnum) == 0", "1 arguments, 2 to 201 wanted", "unexpected(this.tailnum)"),
        ("unexpected(this.tailnum, rows(this)) == 0", "or a value, is wanted", "rows(this)"),
        ("drift(this.delay, planes) < 5%", "A column is wanted, as in planes.some_column", "planes"),
        ("drift(this.delay, this[-7d].dely) < 5%", "has no column `dely`. Did you mean `delay`?", "drift(this.delay, this[-7d].dely)"),
        ("matching(this, this@dc3) > 5%", "No primary key is known here", "matching(this, this@dc3)"),
        ("matching(this, this@dc3, 10%, tailnum) > 5%", "There is no data center `dc3`.", "this@dc3"),
        ("matching(this, this@dc2, 0%, tailnum) > 5%", "more than 0% and at most 100%", "0%"),
        ("matching(this, this@dc2[-1d], 10%, tailnum) > 5%", "The same partition of both tables is compared", "this@dc2[-1d]"),
        ("sampled(this, upstream, 0, tailnum) > 5%", "A sample has 1 to 100,000 rows, not 0.", "0"),
        ("sampled(this, upstream, 1000, tailnumb) > 5%", "has no column `tailnumb`. Did you mean `tailnum`?", "sampled(this, upstream, 1000, tailnumb)"),
        ("rows(this) > 'x'", "A text is not compared", "rows(this) > 'x'"),
        ("rows(this) + 'x' > 1", "A text cannot be added", "rows(this) + 'x'"),
        ("rows(this) * 'x' > 1", "has no meaning", "rows(this) * 'x'"),
        ("rows('this') > 1", "The name of a table or column is wanted", "'this'"),
    ],
)  # fmt: skip
def test_values_of_columns(text: str, says: str, at: str) -> None:
    error = error_of(text)
    assert says in str(error)
    assert text[error.where.start : error.where.end] == at


@pytest.mark.parametrize(
    ("text", "says", "at"),
    [
        ("rows(this) > 1 with by=orign", "This dataset has no column `orign`. Did you mean `origin`?", "orign"),
        ("completeness(this) > 1% with by=origin", "`upstream` has no column `origin`.", "origin"),
        ("rows(this) > 1 with least=5", "`least` is about the groups of `by`", "5"),
        ("rows(this) > 1 with by=origin, most=0", "`most` is 1 to 1,000 groups, not 0.", "0"),
        ("rows(this) > 1 with by=origin, least=many", "`least` wants a whole number such as 30, not `many`.", "many"),
        ("rows(this) > 1 with by=origin, least=1.5", "`least` wants a whole number such as 30, not `1.5`.", "1.5"),
        ("rows(this) > 1 with by='origin'", "`by` wants a name, not `'origin'`.", "'origin'"),
        ("rows(this) > 1 with dc=dc3", "There is no data center `dc3`. Did you mean `dc", "dc3"),
        ("rows(this) > 1 with engine='spark'", "`engine` wants a word such as duckdb, not `'spark'`.", "'spark'"),
        ("rows(this) > 1 with timeout=100000d", "`timeout` is 30m at most, not `100000d`.", "100000d"),
        ("rows(this) > 1 with timeout=999ms", "`timeout` is 1s to 30m, not 999ms.", "999ms"),
        ("rows(this) > 1 with cadence=1ms", "`cadence` is 30s at least, not 1ms.", "1ms"),
        ("rows(this) > 1 with cadence=0s", "`cadence` is 30s at least, not 0s.", "0s"),
        ("rows(this) > 1 with cadence=367d", "`cadence` is 366d at most, not 52w3d.", "367d"),
        ("rows(this) > 1 with sustain=99999999d", "`sustain` is 366d at most, not `99999999d`.", "99999999d"),
        ("freshness(this, upstream) < 2h with by=tailnum", "`freshness` cannot be asked by the values of a column.", "freshness(this, upstream)"),
        ("query(this, 'SELECT 1 FROM this') > 1 with by=origin", "`query` cannot be asked", "query(this, 'SELECT 1 FROM this')"),
    ],
)  # fmt: skip
def test_parameters(text: str, says: str, at: str) -> None:
    error = error_of(text)
    assert says in str(error)
    assert text[error.where.start : error.where.end] == at


def test_the_shortest_and_longest_waits_are_allowed() -> None:
    given = understand("rows(this) > 1 with cadence=30s, timeout=30m", SCOPE).parameters
    assert (given.cadence, given.timeout) == (timedelta(seconds=30), timedelta(minutes=30))
    assert understand("rows(this) > 1 with timeout=1s", SCOPE).parameters.timeout == timedelta(seconds=1)


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT count(* FROM this", "The query cannot be understood: line 1, column"),
        ("DELETE FROM this", "One SELECT is wanted, not DELETE."),
        ("SELECT 1 FROM this; SELECT 2 FROM this", "One SELECT is wanted, not 2 statements."),
        ("WITH gone AS (DELETE FROM this RETURNING 1) SELECT * FROM gone", "without DELETE"),
        ("SELECT 1 INTO copied FROM this", "without INTO"),
        ("SELECT 1 FROM this FOR UPDATE", "without LOCK"),
        ("SELECT 1", "The query reads no table: name `this`"),
        ("SELECT 1 FROM read_csv('/etc/passwd')", "it may read `this` and datasets by their names"),
        ("SELECT 1 FROM '/etc/passwd'", "There is no dataset `/etc/passwd`."),
        ("SELECT 1 FROM secret.this", "datasets are named without a schema"),
        ("SELECT 1 FROM this JOIN plane USING (tailnum)", "There is no dataset `plane`. Did you mean `planes`?"),
        ("SELECT 1 FROM this WHERE day = :partitoin", "no parameter `:partitoin`. Did you mean `partition`?"),
        ("SELECT 1 FROM this WHERE day = ?", "no parameter `:?`"),
        ("", "One SELECT is wanted, not 0 statements."),
    ],
)
def test_queries(sql: str, says: str) -> None:
    quoted = sql.replace("'", "''")
    text = f"query(this, '{quoted}') > 1"
    error = error_of(text)
    assert says in str(error)
    assert text[error.where.start : error.where.end] == f"'{quoted}'"


def test_a_query_may_use_its_partition_and_name_other_datasets() -> None:
    sql = "WITH p AS (SELECT * FROM planes) SELECT count(*) FROM this JOIN p USING (tailnum) WHERE d >= :start AND d < :end"
    assert understand(f"query(this, '{sql}') > 1", SCOPE).assertion is not None
