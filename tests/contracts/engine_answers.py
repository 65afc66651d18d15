"""What every engine answers of the same rows, value and type: nulls, decimals, big integers, days, times with and without
a zone, booleans, texts of many scripts, hostile names. The facts are run by test_engine_answers and by the suites with servers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from lakehub.catalog.metadata.tables import StoredTable
from lakehub.kernel.outcome import Outcome
from lakehub.kernel.partitions import Grain, parse_partition_name, partition_at, partition_name
from lakehub.kernel.partitions.form import PartitionForm, partition_form
from quality.domain.language.measures import ROWS, Measure
from quality.domain.language.tree.nodes import Name
from quality.domain.language.values import Failed
from quality.engines import Engine
from quality.engines.scans.parts import CannotRead, EachPartition, OnePartition, Part, WholeTable
from quality.engines.scans.scan import Limits, Scan, ScanAnswers
from quality.engines.sql.numeric_bins import BINS_PER_POWER, bin_name, bin_of

PART = "part"
ODD = 'order "x:%'
BIG = 2**62
WORDS = Name("words")
WHOLE = WholeTable()


def _row(part: str, id_: int | None, price: str | None, ratio: float | None, **rest: Any) -> dict[str, Any]:
    return {"id": id_, "price": price and Decimal(price), "ratio": ratio, **rest, ODD: id_, PART: part}


def _hour(day: int, hour: int) -> datetime:
    return datetime(2026, 11, day, hour, 30, tzinfo=UTC)


TABLE: list[dict[str, Any]] = [
    _row("p1", 1, "0.10", 0.5, born=date(2026, 1, 1), ok=True, zoned=_hour(1, 5), word="AA"),
    _row("p1", BIG, "0.20", 2.0, born=date(2026, 1, 1), ok=False, zoned=_hour(1, 6), word="aa"),
    _row("p1", BIG, "10.00", -3.0, born=date(1969, 7, 20), ok=None, zoned=_hour(1, 6), word="A"),
    _row("p1", None, None, None, born=None, ok=None, zoned=None, word=None),
    _row("p2", 2, "-7.25", 1024.0, born=date(2026, 12, 31), ok=True, zoned=_hour(2, 23), word="A "),
    _row("p2", BIG, "0.10", 1023.0, born=date(2027, 1, 1), ok=True, zoned=_hour(2, 23), word="Ærø"),
    _row("p2", BIG, "0.10", 0.0, born=date(2026, 12, 31), ok=True, zoned=_hour(3, 0), word="飛行機✈"),
]
for _each in TABLE:
    _each["local"] = _each["zoned"] and _each["zoned"].replace(tzinfo=None)
    _each["ds"] = _each["zoned"] and int(f"{_each['zoned']:%Y%m%d}")
    _each["hr"] = _each["zoned"] and f"{_each['zoned']:%H}"
_BOUNDS = [
    2.0**power * (1 + part / BINS_PER_POWER)
    for power in (-33, -32, -31, -3, -1, 0, 1, 2, 10, 29, 52, 53, 63, 64, 70)
    for part in range(BINS_PER_POWER)
]
NUMBERS = [
    {"x": sign * value}
    for bound in _BOUNDS
    for value in (math.nextafter(bound, 0), bound, math.nextafter(bound, math.inf))
    for sign in (1, -1)
]
"""Around the bounds of bins, where a logarithm is wrong first."""
LOOKED_INTO = [{"word": "AA"}, {"word": "AA"}, {"word": "A"}, {"word": None}, {"word": "Ærø"}]
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("price", pa.decimal128(10, 2)),
        ("ratio", pa.float64()),
        ("born", pa.date32()),
        ("ok", pa.bool_()),
        ("zoned", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("word", pa.string()),
        ("ds", pa.int64()),
        ("hr", pa.string()),
        (ODD, pa.int64()),
        (PART, pa.string()),
    ]
)


def arrow(part: str | None = None) -> pa.Table:
    return pa.Table.from_pylist([row for row in TABLE if part in (None, row[PART])], SCHEMA)


@dataclass(frozen=True)
class Place:
    """Where an engine reads the table. `zones`: it knows times with a zone; `odd`: a column may have any name."""

    engine: Engine
    table: StoredTable
    words: StoredTable
    numbers: StoredTable
    zones: bool = True
    odd: bool = True

    def measured(self, *measures: Measure, part: Part = WHOLE, **scan: Any) -> ScanAnswers:
        limits = scan.pop("limits", Limits())
        return self.engine.measure(Scan(self.table, measures, part, {WORDS: self.words}, **scan), limits)

    def answer(self, measure: Measure, part: Part = WHOLE, **scan: Any) -> Any:
        return self.measured(measure, part=part, **scan).answers[measure]


def measure(kind: str, *columns: str, values: tuple[Any, ...] = ()) -> Measure:
    return Measure(kind, columns, values=values)


UNMATCHED = Measure("unmatched", ("word",), WORDS, ("word",))
COUNTS: dict[Measure, tuple[int, int]] = {
    ROWS: (7, 4),
    measure("nulls", "id"): (1, 1),
    measure("filled", "id"): (6, 3),
    measure("distinct", "id"): (4, 3),
    measure("distinct", "price"): (5, 4),
    measure("distinct", "ok"): (3, 3),
    measure("distinct", "word"): (7, 4),
    measure("distinct", "zoned"): (5, 3),
    measure("distinct", "word", "ok"): (7, 4),
    measure("distinct", "id", "price", "born"): (7, 4),
    measure("repeated", "id"): (3, 1),
    measure("repeated", "ok"): (3, 0),
    measure("repeated", "word", "ok"): (0, 0),
    measure("repeated", "id", "price"): (1, 0),
    measure("repeated", "ok", "born"): (1, 0),
    UNMATCHED: (3, 1),
    measure("outside", "ratio", values=(0, 1023)): (2, 1),
    measure("outside", "id", values=(1, 2**61)): (4, 2),
    measure("outside", "price", values=(Decimal("0.1"), Decimal("0.2"))): (2, 1),
    measure("outside", "born", values=("2026-01-01", "2026-12-31")): (2, 1),
    measure("outside", "zoned", values=("2026-11-01 06:00", "2026-11-02 19:00-05:00")): (2, 1),
    measure("outside", "local", values=("2026-11-01 06:00", "2026-11-02 23:30")): (2, 1),
    measure("outside", "word", values=("A", "Z")): (3, 1),
    measure("mismatched", "word", values=("[A-Z]{1,2}",)): (4, 1),
    measure("mismatched", "word", values=(r"(?i)a+|\S*",)): (1, 0),
    measure("mismatched", "word", values=(r".{3}.*",)): (4, 3),
    measure("unexpected", "word", values=("AA", "Ærø", "it's", ":x", "%s")): (4, 2),
    measure("unexpected", "id", values=(1, BIG)): (1, 0),
    measure("unexpected", "ok", values=("true",)): (1, 1),
    measure("unexpected", "born", values=("2026-01-01", "2026-12-31")): (2, 1),
    measure("unexpected", "price", values=(Decimal("0.10"), 10, Decimal("0.2"))): (1, 0),
}
"""Of the whole table and of the part p1."""
VALUES: dict[Measure, tuple[Any, Any]] = {
    measure("sum", "id"): (4 * BIG + 3, 2 * BIG + 1),
    measure("sum", "price"): (Decimal("3.25"), Decimal("10.3")),
    measure("sum", "ratio"): (2046.5, -0.5),
    measure("minimum", "id"): (1, 1),
    measure("maximum", "id"): (BIG, BIG),
    measure("minimum", "price"): (Decimal("-7.25"), Decimal("0.1")),
    measure("maximum", "price"): (Decimal(10), Decimal(10)),
    measure("maximum", "ratio"): (1024.0, 2.0),
    measure("minimum", "born"): (date(1969, 7, 20), date(1969, 7, 20)),
    measure("maximum", "born"): (date(2027, 1, 1), date(2026, 1, 1)),
    measure("minimum", "ok"): (False, False),
    measure("maximum", "ok"): (True, True),
    measure("maximum", "zoned"): (_hour(3, 0), _hour(1, 6)),
    measure("maximum", "local"): (_hour(3, 0).replace(tzinfo=None), _hour(1, 6).replace(tzinfo=None)),
    measure("minimum", "word"): ("A", "A"),
    measure("maximum", "word"): ("飛行機✈", "aa"),
}
ALL = (*COUNTS, *VALUES)
OF_NOTHING = {**dict.fromkeys(COUNTS, 0), **dict.fromkeys(VALUES, None)}


def _told(place: Place, value: Any) -> Any:
    """As this place tells a time with a zone."""
    return value.replace(tzinfo=None) if isinstance(value, datetime) and not place.zones else value


def _typed(answers: Any) -> dict[str, tuple[str, Any]]:
    return {str(asked): (type(answer).__name__, answer) for asked, answer in answers.items()}


def the_answers_are_the_same_in_value_and_type(place: Place) -> None:
    for number, part in enumerate((WholeTable(), OnePartition(PART, "p1"))):
        expected = {asked: _told(place, values[number]) for asked, values in {**COUNTS, **VALUES}.items()}
        assert _typed(place.measured(*ALL, part=part).answers) == _typed(expected)


def a_part_that_is_not_there_has_nothing(place: Place) -> None:
    assert place.measured(*ALL, part=OnePartition(PART, "p3")).answers == OF_NOTHING


def each_part_is_answered_in_one_go(place: Place) -> None:
    answers = place.measured(*ALL, part=EachPartition(PART)).answers
    for asked, (_, first) in {**COUNTS, **VALUES}.items():
        assert (set(answers[asked]), answers[asked]["p1"]) == ({"p1", "p2"}, _told(place, first))


NEW_YORK, UTC_ZONE = ZoneInfo("America/New_York"), ZoneInfo("UTC")
NIGHT = {"2026-11-01T01": 1, "2026-11-01T01-0500": 2, "2026-11-02T18": 2, "2026-11-02T19": 1, None: 1}
"""By the hour of New York, where the clocks went back in between."""
LOCAL_DAYS = {"2026-11-01": 3, "2026-11-02": 2, "2026-11-03": 1, None: 1}
FORMS: tuple[tuple[PartitionForm, dict[str | None, int]], ...] = (
    (partition_form("zoned", Grain.HOUR, NEW_YORK, "time"), NIGHT),
    (partition_form("zoned", Grain.DAY, NEW_YORK, "time"), {"2026-11-01": 3, "2026-11-02": 3, None: 1}),
    (partition_form("local", Grain.DAY, NEW_YORK, "time"), LOCAL_DAYS),
    (partition_form("local", Grain.HOUR, UTC_ZONE, "time in UTC"),
     {"2026-11-01T05": 1, "2026-11-01T06": 2, "2026-11-02T23": 2, "2026-11-03T00": 1, None: 1}),
    (partition_form("local", Grain.HOUR, NEW_YORK, "time in UTC"), NIGHT),
    (partition_form("local", Grain.WEEK, NEW_YORK, "time"), {"2026-W44": 3, "2026-W45": 3, None: 1}),
    (partition_form("born", Grain.DAY, NEW_YORK, "time"),
     {"2026-01-01": 2, "1969-07-20": 1, "2026-12-31": 2, "2027-01-01": 1, None: 1}),
    (partition_form("born", Grain.WEEK, NEW_YORK, "time"), {"2026-W01": 2, "1969-W29": 1, "2026-W53": 3, None: 1}),
    (partition_form("born", Grain.MONTH, NEW_YORK, "time"),
     {"2026-01": 2, "1969-07": 1, "2026-12": 2, "2027-01": 1, None: 1}),
    (partition_form("born", Grain.QUARTER, NEW_YORK, "time"),
     {"2026-Q1": 2, "1969-Q3": 1, "2026-Q4": 2, "2027-Q1": 1, None: 1}),
    (partition_form("born", Grain.YEAR, NEW_YORK, "time"), {"2026": 4, "1969": 1, "2027": 1, None: 1}),
    (partition_form("ds", Grain.DAY, NEW_YORK, "%Y%m%d"), LOCAL_DAYS),
    (partition_form("ds, hr", Grain.HOUR, UTC_ZONE, "%Y%m%d, %H"),
     {"2026-11-01T05": 1, "2026-11-01T06": 2, "2026-11-02T23": 2, "2026-11-03T00": 1, None: 1}),
)  # fmt: skip
"""How columns say a partition, and how many rows each has."""


def _forms(place: Place) -> Iterator[tuple[PartitionForm, dict[str | None, int]]]:
    """What SQLite calls a time has no zone."""
    return ((form, counts) for form, counts in FORMS if place.zones or form.columns != ("zoned",))


def partitions_are_read_as_their_columns_say_them(place: Place) -> None:
    for form, counts in _forms(place):
        for name, rows in counts.items():
            part = OnePartition(form.columns[0], name, form) if name else WholeTable()
            assert place.answer(ROWS, part) == (rows if name else len(TABLE)), (form, name)
        first = next(iter(counts))
        assert first is not None
        later = parse_partition_name(first, form.grain, form.zone).end + timedelta(days=4000)
        name = partition_name(partition_at(later, form.grain, form.zone), form.grain, form.zone)
        assert place.answer(ROWS, OnePartition(form.columns[0], name, form)) == 0, form


def all_partitions_are_answered_by_their_names(place: Place) -> None:
    filled = measure("filled", "id")
    for form, counts in _forms(place):
        part = EachPartition(form.columns[0], form)
        measured = place.measured(ROWS, filled, part=part)
        assert measured.answers[ROWS] == counts, form
        assert isinstance(by_name := measured.answers[filled], Mapping)
        assert set(by_name) == set(counts), form


def queries_look_at_one_partition_as_well(place: Place) -> None:
    (count,) = _queries("SELECT count(*) FROM this")
    for form, counts in _forms(place):
        name = next(name for name in counts if name)
        assert place.answer(count, OnePartition(form.columns[0], name, form)) == counts[name], form


def a_value_that_is_no_partition_keeps_its_rows_under_its_own_text(place: Place) -> None:
    form = partition_form("word", Grain.DAY, NEW_YORK, "%Y%m%d")
    assert place.answer(ROWS, EachPartition("word", form)) == {row["word"]: 1 for row in TABLE}


def a_column_that_holds_no_times_is_not_cut(place: Place) -> None:
    form = partition_form("word", Grain.DAY, NEW_YORK, "time")
    for part in (EachPartition("word", form), OnePartition("word", "2026-11-01", form)):
        with pytest.raises(
            CannotRead, match="`word` is a text and holds no times: write how it says them, such as %Y%m%d"
        ):
            place.answer(measure("filled", "id"), part)


def however_many_measures_are_one_scan(place: Place) -> None:
    # Keys are no state that merges: Spark counts them beside the scan.
    states = [asked for asked in ALL if asked.kind not in ("distinct", "repeated")]
    assert [place.measured(*states[:count]).scan_count for count in (2, 20, len(states))] == [1, 1, 1]


def numbers_have_the_same_bins(place: Place) -> None:
    ratios = measure("frequencies", "ratio")
    expected = Counter(None if row["ratio"] is None else bin_name(bin_of(row["ratio"])) for row in TABLE)
    assert place.answer(ratios) == expected
    assert place.answer(ratios, OnePartition(PART, "p3")) == {}


def numbers_at_the_bounds_have_the_same_bins(place: Place) -> None:
    x = measure("frequencies", "x")
    bins = place.engine.measure(Scan(place.numbers, (x,)), Limits()).answers[x]
    assert bins == Counter(bin_name(bin_of(row["x"])) for row in NUMBERS)


def other_values_are_their_own_bins(place: Place) -> None:
    assert place.answer(measure("frequencies", "ok")) == {"true": 4, "false": 1, None: 2}
    words = {row["word"]: 1 for row in TABLE}
    assert place.answer(measure("frequencies", "word")) == words
    by_day = place.answer(measure("frequencies", "born"), EachPartition(PART))
    assert by_day["p2"] == {"2026-12-31": 2, "2027-01-01": 1}


def groups_are_named_alike(place: Place) -> None:
    big = str(BIG)
    expected = {
        "id": {big: 4, None: 1, "1": 1, "2": 1},
        "price": {"0.1": 3, "0.2": 1, "10": 1, "-7.25": 1, None: 1},
        "ok": {"true": 4, "false": 1, None: 2},
        "born": {"2026-01-01": 2, "1969-07-20": 1, None: 1, "2026-12-31": 2, "2027-01-01": 1},
        "word": {row["word"]: 1 for row in TABLE},
    }
    for by, groups in expected.items():
        measured = place.measured(ROWS, group_by=by)
        assert (measured.answers[ROWS], measured.group_count) == (groups, len(groups))


def every_measure_is_answered_by_group(place: Place) -> None:
    measures = (ROWS, measure("sum", "price"), measure("mismatched", "word", values=("A+",)), UNMATCHED)
    measured = place.measured(*measures, group_by="ok", part=OnePartition(PART, "p1"))
    assert list(measured.answers.values()) == [
        {"true": 1, "false": 1, None: 2},
        {"true": Decimal("0.1"), "false": Decimal("0.2"), None: Decimal(10)},
        {"true": 0, "false": 1, None: 0},
        {"true": 0, "false": 1, None: 0},
    ]
    assert measured.scan_count == 1


def of_many_groups_the_largest_are_answered(place: Place) -> None:
    measured = place.measured(ROWS, group_by="price", max_groups=1)
    assert (measured.answers[ROWS], measured.group_count) == ({"0.1": 3, None: 1}, 5)


def more_groups_than_an_engine_may_hand_over_are_refused(place: Place) -> None:
    filled = measure("filled", "id")
    failed = place.answer(filled, EachPartition("word"), limits=Limits(max_rows=3))
    assert failed == Failed(Outcome.ERROR, "`word` has more than 3 groups")


def a_bad_measure_costs_only_itself(place: Place) -> None:
    bad = {
        measure("nulls", 'x") FROM flights; --'): "There is no column",
        measure("sum", "word"): "`word` is a text, not a number",
        measure("sum", "born"): "not a number",
        measure("outside", "ratio", values=("low", "high")): "is not compared with 'low'; write a float",
        measure("unexpected", "born", values=("tomorrow",)): "is not compared with 'tomorrow'",
        measure("unexpected", "word", values=(1,)): "is not compared with 1; write a text, such as 'AA'",
        measure("mismatched", "id", values=("x",)): "a pattern is for texts",
        measure("mismatched", "word", values=("(",)): "is no regular expression",
        measure("mismatched", "word", values=(r"a(?=b)",)): "is no regular expression",
        measure("mismatched", "word", values=(r"\bx",)): "is not understood by all engines",
        Measure("unmatched", ("word",), WORDS, ("wrod",)): "There is no column `wrod`. Did you mean `word`?",
        measure("nonsense", "word"): "nonsense is not measured here",
    }
    measured = place.measured(ROWS, *bad)
    assert (measured.answers[ROWS], measured.scan_count) == (7, 1)
    for refused, why in bad.items():
        failed = measured.answers[refused]
        assert isinstance(failed, Failed)
        assert why in failed.cause


def _queries(*texts: str, bound: tuple[Any, ...] = (None, None, None)) -> tuple[Measure, ...]:
    return tuple(measure("query", values=(text, *bound)) for text in texts)


def a_query_of_a_person_has_one_number(place: Place) -> None:
    expected = {
        "SELECT count(*) FROM this": 4,
        "SELECT sum(ratio) / count(*) FROM this -- the mean\n": -0.125,
        "SELECT count(*) FROM this WHERE zoned >= :start AND zoned < :end AND part = :partition": 3,
        "SELECT count(*) FROM this t WHERE EXISTS (SELECT 1 FROM words w WHERE w.word = t.word) AND t.id = 1": 1,
        "WITH big AS (SELECT id FROM this WHERE id > 100) SELECT count(*) FROM big": 2,
        "SELECT sum(ratio) FROM this WHERE id = -1": None,
    }
    asked = _queries(*expected, bound=(_hour(1, 0), _hour(2, 0), "p1"))
    assert place.measured(*asked, part=OnePartition(PART, "p1")).answers == dict(
        zip(asked, expected.values(), strict=True)
    )
    (whole,) = _queries("SELECT count(*) FROM this")
    assert place.measured(whole, ROWS).answers == {whole: 7, ROWS: 7}


def a_query_that_is_wrong_says_so(place: Place) -> None:
    wrong = {
        "SELECT count(*), 1 FROM this": "2 columns",
        "SELECT id FROM this": "more than one row",
        "SELECT id FROM this WHERE id = -1": "no row",
        "SELECT max(word) FROM this": "no number",
        "SELECT count(*) FROM this WHERE part = :partition": "a table that is looked at as a whole has none",
        "SELECT count(tailnum) FROM this": "tailnum",
        "SELECT count(*) FROM other": "may not read `other`",
    }
    asked = _queries(*wrong)
    answers = place.measured(*asked, ROWS).answers
    assert answers[ROWS] == 7
    for query, why in zip(asked, wrong.values(), strict=True):
        failed = answers[query]
        assert isinstance(failed, Failed), query
        assert why in failed.cause
    assert isinstance(place.answer(asked[0], EachPartition(PART)), Failed)


def a_query_that_does_more_than_read_is_refused(place: Place) -> None:
    for query, failed in place.measured(*_queries(*ESCAPES)).answers.items():
        assert isinstance(failed, Failed), query
        assert failed.cause.startswith(("The query", "The function", "One SELECT", "WITH", "The name")), failed.cause


ESCAPES = (
    "SELECT count(x) FROM (SELECT TRANSFORM(id) USING 'touch /tmp/lakehub-stolen; cat' AS (x) FROM this) AS t",
    "SELECT MAP(id) USING 'cat' FROM this",
    "SELECT 1; DROP TABLE this",
    "DROP TABLE this",
    "UPDATE this SET id = 1",
    "WITH gone AS (DELETE FROM this RETURNING id) SELECT count(*) FROM gone",
    "SELECT count(*) INTO copied FROM this",
    "SELECT count(*) FROM this FOR UPDATE",
    "COPY this TO '/tmp/lakehub-stolen.csv'",
    "COPY (SELECT * FROM this) TO '/tmp/lakehub-stolen.csv'",
    "ATTACH '/tmp/lakehub-stolen.db' AS stolen",
    "INSTALL httpfs",
    "LOAD httpfs",
    "PRAGMA database_list",
    "SET memory_limit = '100GB'",
    "CALL pragma_version()",
    "EXPLAIN SELECT count(*) FROM this",
    "SELECT count(*) FROM read_csv('/etc/passwd')",
    "SELECT count(*) FROM read_text('/etc/passwd')",
    "SELECT count(*) FROM glob('/etc/*')",
    "SELECT count(*) FROM '/etc/passwd'",
    'SELECT count(*) FROM "/etc/passwd"',
    "SELECT count(*) FROM parquet.`/etc/passwd`",
    "SELECT count(*) FROM information_schema.tables",
    "SELECT count(*) FROM pg_catalog.pg_authid",
    "SELECT count(*) FROM mysql.user",
    "SELECT count(*) FROM sqlite_master",
    "SELECT count(*) FROM secret.this",
    "WITH x AS (SELECT 1 FROM pg_authid), pg_authid AS (SELECT 1 FROM this) SELECT count(*) FROM x",
    "WITH pg_authid AS (SELECT 1 FROM pg_authid) SELECT count(*) FROM pg_authid",
    "SELECT (WITH pg_authid AS (SELECT 1) SELECT 1 FROM pg_authid) + count(*) FROM pg_authid",
    "SELECT (WITH x AS (SELECT count(*) AS n FROM pg_authid) SELECT 1) FROM this",
    "WITH this AS (SELECT 1) SELECT count(*) FROM this",
    "SELECT length(pg_read_file('/etc/passwd')) FROM this",
    "SELECT length(load_file('/etc/passwd')) FROM this",
    "SELECT count(*) FROM this, pg_ls_dir('/') AS files",
    "SELECT count(pg_sleep(60)) FROM this",
    "SELECT sleep(60) FROM this",
    "SELECT benchmark(1000000000, md5('a')) FROM this",
    "SELECT count(lo_import('/etc/passwd')) FROM this",
    "SELECT length(getenv('HOME')) FROM this",
    "SELECT length(current_setting('secret_directory')) FROM this",
    "SELECT reflect('java.lang.System', 'exit', 1) FROM this",
    "SELECT java_method('java.lang.System', 'exit', 1) FROM this",
    "SELECT load_extension('/tmp/x.so') FROM this",
    "SELECT count(*) FROM query('SELECT 1')",
    "SELECT count(*) FROM duckdb_settings()",
    "SELECT count(*) FROM range(1000000000000)",
    "SELECT count(*) FROM this /*! UNION SELECT length(load_file('/etc/passwd')) */ WHERE nosuch(1)",
    "SELECT count(*) FROM this WHERE id = ?",
    "SELECT count(*) FROM this WHERE id = :secret",
    """SELECT EXTRACT("a), evil(" FROM born) FROM this""",
    """SELECT EXTRACT(`a), evil(` FROM born) FROM this""",
    """SELECT CAST(1 AS "zz) + (SELECT max(id) FROM secret) --") FROM this""",
    """SELECT CAST(1 AS `zz) + (SELECT max(id) FROM secret) --`) FROM this""",
    """SELECT make_interval("secs => 1)) FROM this; DROP TABLE victim; --" => 0) FROM this""",
    """SELECT make_interval(`secs => 1)) FROM this; DROP TABLE victim; --` => 0) FROM this""",
    "SELECT CAST(id AS secret) FROM this",
    "SELECT count(*) FROM this WHERE ('bob', 1) IN people",
    "SELECT count(*) FROM this WHERE id IN people",
    "SELECT count(*) FROM this WHERE id NOT IN secret.people",
    "SELECT count(secret.len('a')) FROM this",
)


ROW_KINDS = ("nulls", "outside", "mismatched", "unexpected", "unmatched")


def the_rows_that_a_measure_counts_can_be_shown(place: Place) -> None:
    """As texts and nulls, in the columns that there are; together with measures that count."""
    shown = ("id", "price", "born", "ok", "word", "nowhere")
    for asked, counts in COUNTS.items():
        for count, part in zip(counts, (WholeTable(), OnePartition(PART, "p1")), strict=True):
            if asked.kind in ROW_KINDS:
                rows = place.answer(replace(asked, shown=shown), part)
                assert rows["columns"] == list(shown[:-1])
                assert len(rows["rows"]) == count, asked
    odd_word = replace(measure("mismatched", "word", values=("[A-Z]{1,2}",)), shown=shown)
    answers = place.measured(ROWS, odd_word, part=OnePartition(PART, "p1")).answers
    assert answers[ROWS] == 4
    assert answers[odd_word]["rows"] == [[str(BIG), "0.2", "2026-01-01", "false", "aa"]]
    every_kind = replace(measure("nulls", "id"), shown=tuple(SCHEMA.names[:8]))
    assert place.answer(every_kind)["rows"] == [[None] * 8]
    assert place.answer(every_kind, OnePartition(PART, "p9")).get("rows", []) == []


def the_keys_that_repeat_can_be_shown(place: Place) -> None:
    """With how often they do; two nulls are a repetition too."""
    shown = ("price", "ok")
    by_price = place.answer(replace(measure("distinct", "price"), shown=shown))
    assert by_price == {"columns": ["price", "rows with this key"], "rows": [["0.1", "3"]]}
    by_flag = place.answer(replace(measure("distinct", "ok"), shown=shown))
    assert by_flag["rows"] == [["true", "4"], [None, "2"]]
    assert place.answer(replace(measure("distinct", "word", "ok"), shown=shown))["rows"] == []
    assert place.answer(replace(measure("repeated", "ok"), shown=shown))["rows"] == [["true", "4"]]


def keys_in_more_than_one_partition_are_counted_and_named(place: Place) -> None:
    """The same by grouping and by a Bloom filter; nulls are no keys, and what repeats within a partition only is not meant."""
    for limits in (Limits(), Limits(max_grouped_keys=1)):
        by_id = place.answer(measure("across_partitions", "id"), EachPartition(PART), limits=limits)
        assert (by_id["keyed"], by_id["keys"], by_id["repeated"]) == (6, 1, 3), by_id["report"]
        assert by_id["columns"] == ["id", "rows with this key", "first partition", "last partition"]
        assert by_id["rows"] == [[str(BIG), "4", "p1", "p2"]]
        by_price = place.answer(measure("across_partitions", "price"), EachPartition(PART), limits=limits)
        assert by_price["rows"] == [["0.1", "3", "p1", "p2"]]
        for key in (("word", "ok"), ("id", "born"), ("word",)):
            nowhere = place.answer(measure("across_partitions", *key), EachPartition(PART), limits=limits)
            assert (nowhere["keys"], nowhere["repeated"], nowhere["rows"]) == (0, 0, []), key
        form = partition_form("ds", Grain.DAY, NEW_YORK, "%Y%m%d")
        by_form = place.answer(measure("across_partitions", "ok"), EachPartition("ds", form), limits=limits)
        assert by_form["rows"] == [["true", "4", "2026-11-01", "2026-11-03"]]
    assert place.answer(measure("across_partitions", "id")) == Failed(
        Outcome.ERROR, "this table has no partitions: test duplicates(this) instead"
    )


def a_column_may_have_any_name(place: Place) -> None:
    """Hudi's names are Avro's: letters, digits, underscores."""
    if place.odd:
        assert place.answer(measure("filled", ODD), OnePartition(PART, "p1")) == 3
        assert place.answer(measure("outside", ODD, values=(1, 2)), group_by=ODD)[str(BIG)] == 4


FACTS: tuple[Callable[[Place], None], ...] = (
    the_answers_are_the_same_in_value_and_type,
    a_part_that_is_not_there_has_nothing,
    each_part_is_answered_in_one_go,
    partitions_are_read_as_their_columns_say_them,
    all_partitions_are_answered_by_their_names,
    queries_look_at_one_partition_as_well,
    a_value_that_is_no_partition_keeps_its_rows_under_its_own_text,
    a_column_that_holds_no_times_is_not_cut,
    however_many_measures_are_one_scan,
    numbers_have_the_same_bins,
    numbers_at_the_bounds_have_the_same_bins,
    other_values_are_their_own_bins,
    groups_are_named_alike,
    every_measure_is_answered_by_group,
    of_many_groups_the_largest_are_answered,
    more_groups_than_an_engine_may_hand_over_are_refused,
    a_bad_measure_costs_only_itself,
    the_rows_that_a_measure_counts_can_be_shown,
    the_keys_that_repeat_can_be_shown,
    keys_in_more_than_one_partition_are_counted_and_named,
    a_column_may_have_any_name,
    a_query_of_a_person_has_one_number,
    a_query_that_is_wrong_says_so,
    a_query_that_does_more_than_read_is_refused,
)
every_fact = pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.__name__)
