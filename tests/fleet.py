"""A small fleet in every state, for looking at pages and for tests that need more than one thing.

By hand: `python manage.py shell -c "from tests.fleet import build; build()"` on an empty instance (LAKEHUB_CLOCK=shifted).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from incidents.alerts import generate
from incidents.models import GatePolicy, GateQuestion, Incident, IncidentState, MessageState, PolicyPreset
from ingestion.captures.records import topic_of
from ingestion.domain.schema import Schema
from ingestion.heatpipe.event_schema import event_schema
from ingestion.models import BlockedInput, Capture, JobKind, JobState
from lakehub.accounts.models import Consumer, Role, User
from lakehub.catalog.models import Dataset
from lakehub.clock.models import ClockShift
from lakehub.kernel.interval import EVERYTHING
from lakehub.kernel.outcome import Outcome, Verdict
from quality.models import Category, QualityTest, SkippedCheck, Unit
from tests import factories as make
from tests.factories import DAY, HOUR, MINUTE, NOW

COLUMNS = [
    {"name": name, "type": "string", "nullable": False} for name in ("carrier", "flight", "origin", "flight_date")
]
_BOOKING = ({"name": "id", "type": "long"}, {"name": "seat", "type": "string", "doc": "Row and letter"})
_STOP = {"type": "record", "name": "Stop", "fields": [{"name": "airport", "type": "string"}]}
BOOKING_FIELDS = (
    [*_BOOKING],
    [*_BOOKING, {"name": "fare", "type": ["null", "float"], "default": None}],
    [
        *_BOOKING,
        {"name": "fare", "type": ["null", "double"], "default": None, "doc": "In euros"},
        {"name": "stops", "type": {"type": "array", "items": _STOP}, "default": []},
    ],
)
"""By version."""
ROWS = (985, 961, 965, 978, 994, 676, 901)
"""By weekday, as the flights of New York go: Saturdays are thin."""


def build() -> Dataset:
    """Everything; returns `flights`, whose copy in dc2 lacks rows of 16 Nov. Signs in as ines with factories.PASSWORD."""
    ClockShift.move_to(NOW)
    ines = make.user("ines", first_name="Inês", last_name="Duarte")
    for name in ("flight-ops", "weather-data", "fleet"):
        make.member(ines, make.team(name), Role.ADMIN)
    flights = _flights(ines)
    _weather()
    _planes()
    _quiet_ones()
    _schemas(flights)
    upstream = {name: Dataset.objects.get(name=name) for name in ("airlines", "planes")}
    for source in upstream.values():
        make.edge(source, flights)
    make.edge(flights, Dataset.objects.get(name="carrier_daily"))
    _waits(flights, Dataset.objects.get(name="weather"))
    generate.generate_outdated_alerts(now=NOW)
    return flights


def _flights(ines: User) -> Dataset:
    flights = make.dataset(
        "flights",
        copies=("dc1", "dc2"),
        tier=1,
        columns=COLUMNS,
        primary_key=["carrier", "flight", "origin", "flight_date"],
    )
    make.feed(flights)
    for copy in flights.copies.all():
        _commits(copy)
    fresh = make.quality_test(
        flights,
        Category.FRESHNESS,
        title="Complete in time",
        expression="freshness(this) < 1h",
        due_after=HOUR,
        cadence=10 * MINUTE,
    )
    for where, seconds in (("dc1", 240.0), ("dc2", 360.0)):
        _whole(
            fresh,
            where,
            Verdict.PASS,
            seconds,
            "< 1 h",
            observed=f"{int(seconds / 60)} min",
            line=[seconds + 60 * (at % 5) for at in range(28)],
        )
    rows = make.quality_test(
        flights, Category.COMPLETENESS, title="Rows of upstream", expression="rows(this) / rows(upstream) > 99.9%"
    )
    for where in ("dc1", "dc2"):
        _days(rows, where, 1.0, "> 99.9%", "rows(this) / rows(upstream) > 99.9%")
    keys = make.quality_test(flights, Category.DUPLICATES, title="Primary key", expression="duplicates(this) < 0.1%")
    for where in ("dc1", "dc2"):
        _days(keys, where, 0.0, "< 0.1%", "duplicates(this) < 0.1%")
    both = make.quality_test(
        flights,
        Category.CONSISTENCY,
        title="Rows of dc1",
        expression="min(rows(this), rows(this@dc1)) / rows(this@dc1) > 99.9%",
    )
    _days(both, "dc2", 1.0, "> 99.9%", "min(rows(this), rows(this@dc1)) / rows(this@dc1) > 99.9%", until=2)
    _incident(both, flights, ines)
    _planes_known(flights)
    GateQuestion.objects.create(
        at=NOW - 5 * MINUTE,
        consumer="pricing",
        request_id="1",
        copy=make.copy_of(flights, "dc2"),
        start=make.day("2026-11-16").start,
        end=make.day("2026-11-16").end,
        verdict="fail",
        allowed=False,
    )
    Consumer.objects.create(name="pricing", team=flights.team)
    GatePolicy.objects.create(consumer="pricing", preset=PolicyPreset.STRICT, shadow=True)
    GatePolicy.objects.create(consumer="pricing", tier=0, blocks=["fail", "unknown:never_tested"])
    return flights


def _incident(test: QualityTest, flights: Dataset, ines: User) -> Incident:
    """dc2 lacks 10 of 985 rows: warn at 10:40, fail at 12:40, acknowledged, rerun, annotated; messages sent and not."""
    first = NOW - 3 * HOUR - 52 * MINUTE
    opened = first + 2 * HOUR
    unit = _lacking(test, flights, first)
    _failures(unit, first)
    incident = make.incident(
        flights,
        Category.CONSISTENCY,
        unit,
        title="flights: Rows of dc1: 98.98% (975 of 985), needs > 99.9% (dc2, 2026-11-16)",
        opened_at=opened,
        state=IncidentState.ACKNOWLEDGED,
        acknowledged_at=opened + 6 * MINUTE,
        assignee=ines,
        eta=NOW + 58 * MINUTE,
        root_cause="replication",
        backfill="running",
        root_cause_text="dc2 compaction kept the older file slice of 16 Nov.",
    )
    _told(incident, opened)
    return incident


_LACKING = {
    "formula": "min(rows(this), rows(this@dc1)) / rows(this@dc1) > 99.9%",
    "observed": "98.98%",
    "behind": "975 of 985",
    "facts": {"rows(this)": "975", "rows(this@dc1)": "985"},
}


def _lacking(test: QualityTest, flights: Dataset, first: datetime) -> Unit:
    return make.unit(
        test,
        make.copy_of(flights, "dc2"),
        make.day("2026-11-16"),
        Verdict.FAIL,
        observed=0.98985,
        threshold="> 99.9%",
        detail=_LACKING,
        first_fail_at=first,
        last_fail_at=NOW - 34 * MINUTE,
        latest_at=NOW - 34 * MINUTE,
        last_pass_at=first - 9 * HOUR,
        due_at=NOW + 27 * MINUTE,
    )


def _failures(unit: Unit, first: datetime) -> None:
    whole = {"observed": "100.00%", "behind": "985 of 985"}
    make.result(unit, read_at=first - 9 * HOUR, observed=1.0, threshold="> 99.9%", detail=whole)
    for at in (0, 5, 15, 36, 77, 137, 198):
        make.result(
            unit,
            Outcome.FAIL,
            read_at=first + at * MINUTE,
            observed=0.98985,
            threshold="> 99.9%",
            detail=_LACKING,
            trigger="rerun" if at else "late_data",
        )


def _told(incident: Incident, opened: datetime) -> None:
    """What people did and said, and the messages."""
    acknowledged = {"at": opened + 6 * MINUTE, "was": "open", "becomes": "acknowledged"}
    make.event(incident, "acknowledged", actor="ines", **acknowledged)
    for kind, ago, text in (
        ("annotated", 28, "ETA 15:30; root cause replication; backfill running"),
        ("commented", 27, "The dc2 compaction kept the older file slice. Backfill of 16 Nov is running."),
    ):
        make.event(incident, kind, at=NOW - ago * MINUTE, actor="ines", text=text)
    make.message(incident, at=opened, channel="webhook", address="https://hooks.example.org/flight-ops")
    why = "Tier 1 goes to their daily digest"
    make.message(incident, MessageState.DROPPED, at=opened, address="planning@example.org", why=why)


def _planes_known(flights: Dataset) -> None:
    known = make.quality_test(
        flights,
        Category.OTHERS,
        title="Planes are known",
        expression="unmatched(this.tailnum, planes.tailnum) / rows(this) < 20%",
        gating=False,
    )
    _days(known, "dc1", 0.1533, "< 20%", "unmatched(this.tailnum, planes.tailnum) / rows(this) < 20%")


def _waits(flights: Dataset, weather: Dataset) -> None:
    """A backfill that has begun nothing, because an input of it is late."""
    times = {"due_at": NOW + 9 * MINUTE, "started_at": None, "ended_at": None, "waits_since": NOW - 26 * MINUTE}
    BlockedInput.objects.create(
        run=make.run(make.copy_of(flights), JobKind.BACKFILL, JobState.WAITING, **times),
        copy=make.copy_of(weather),
        start=EVERYTHING.start,
        end=EVERYTHING.end,
        verdict="fail",
        reason="fail: sustained",
        incidents=[Incident.objects.get(dataset=weather, category=Category.FRESHNESS).pk],
    )


def _weather() -> None:
    """Stale for real; its completeness is suppressed by that; its duplicates are snoozed."""
    weather = make.dataset(
        "weather",
        team=make.team("weather-data"),
        tier=2,
        kind="append-only",
        by_day=False,
        primary_key=["origin", "year", "hour"],
    )
    make.feed(weather)
    _commits(weather.copies.all()[0])
    fresh = make.quality_test(
        weather,
        Category.FRESHNESS,
        title="Arrived",
        expression="freshness(this) < 2h",
        due_after=2 * HOUR,
        cadence=10 * MINUTE,
    )
    late = _whole(
        fresh,
        "dc1",
        Verdict.FAIL,
        12_720.0,
        "< 2 h",
        observed="3 h 32 min",
        line=[600.0 + 480 * at for at in range(26)],
    )
    first = make.incident(
        weather, Category.FRESHNESS, late, title="weather is 3 h 32 min behind, SLA 2 h", opened_at=NOW - 62 * MINUTE
    )
    rows = make.quality_test(
        weather, Category.COMPLETENESS, title="Rows against noaa", expression="rows(this) / rows(upstream) > 99.5%"
    )
    few = _whole(rows, "dc1", Verdict.FAIL, 0.612, "> 99.5%", observed="61.2%", line=[1.0] * 20 + [0.9, 0.7, 0.612])
    second = make.incident(
        weather, Category.COMPLETENESS, few, title="weather has 61.2% of its upstream rows", opened_at=NOW - 57 * MINUTE
    )
    make.message(
        second, MessageState.HELD, held_by=first, why="Late data explains it: held by the freshness of weather in dc1"
    )
    keys = make.quality_test(weather, Category.DUPLICATES, title="Primary key", expression="duplicates(this) <= 0%")
    twice = _whole(keys, "dc1", Verdict.FAIL, 3.0, "== 0", observed="3", line=[3.0] * 14)
    make.incident(
        weather,
        Category.DUPLICATES,
        twice,
        title="3 keys are there twice in weather",
        opened_at=NOW - 15 * DAY,
        snoozed_until=NOW + 7 * DAY,
    )


def _planes() -> None:
    planes = make.dataset("planes", team=make.team("fleet"), tier=2, by_day=False, primary_key=["tailnum"])
    keys = make.quality_test(planes, Category.DUPLICATES, title="Primary key", expression="duplicates(this) < 0.1%")
    make.unit(
        keys,
        verdict=Verdict.UNKNOWN,
        latest_at=NOW - 102 * MINUTE,
        detail={"cause": "DuckDB was stopped after 60 s, twice"},
        due_at=NOW + 18 * MINUTE,
    )


def _schemas(flights: Dataset) -> None:
    """Of events of an application, one version deprecated; and of the changes of `flights`."""
    for number, fields in enumerate(BOOKING_FIELDS):
        deprecated = {"deprecated_at": NOW - HOUR, "deprecated_why": "Fares were rounded."} if number == 1 else {}
        schema = {"type": "record", "name": "Booking", "doc": "A seat that was sold.", "fields": fields}
        make.schema_version("bookings-value", schema, registered_at=NOW - (9 - 3 * number) * DAY, **deprecated)
    topic = topic_of(flights)
    Capture.objects.create(feed=flights.feed, topic=topic)
    for columns in (
        {"carrier": "string", "flight": "int"},
        {"carrier": "string", "flight": "long", "origin": "string"},
    ):
        make.schema_version(topic, event_schema(topic, Schema.of(columns)), registered_by="tap ops:3306")


def _quiet_ones() -> None:
    """Passing, warning, in grace, reported, bootstrapping, not tested."""
    for name, tier in (
        ("airlines", 4),
        ("airports", 3),
        ("fare_inputs", 0),
        ("departures_live", 0),
        ("crew_pairings", 1),
    ):
        dataset = make.dataset(name, tier=tier, by_day=False)
        for category in (Category.FRESHNESS, Category.DUPLICATES):
            line = [1200.0 + 30 * (at % 7) for at in range(28)]
            _whole(
                make.quality_test(dataset, category, due_after=DAY),
                "dc1",
                Verdict.PASS,
                line[-1],
                "< 1 d",
                observed="20 min",
                line=line,
            )
    daily = make.dataset("carrier_daily", tier=1)
    rows = make.quality_test(
        daily, Category.COMPLETENESS, title="Rows against flights", expression="rows(this) / rows(upstream) > 99.9%"
    )
    warn = {
        "observed": 0.9961,
        "threshold": "> 99.9%",
        "detail": {"observed": "99.61%", "behind": "981 of 985"},
        "due_at": NOW + 9 * MINUTE,
    }
    make.unit(rows, None, make.day("2026-11-16"), Verdict.WARN, **warn)
    contracts = make.dataset("carrier_contracts", tier=4, grace_until=NOW + 7 * DAY, by_day=False)
    _whole(
        make.quality_test(contracts, Category.COMPLETENESS, title="Rows"),
        "dc1",
        Verdict.FAIL,
        0.9,
        "> 99%",
        observed="90%",
        line=[0.9] * 5,
    )
    seats = make.dataset("seat_capacity", tier=3, by_day=False, primary_key=[])
    SkippedCheck.objects.create(dataset=seats, check_name="duplicates", reason="It needs a primary key.")
    routes = make.dataset("route_stats", tier=2)
    make.quality_test(routes, Category.FRESHNESS)
    make.run(routes.copies.all()[0], JobKind.BOOTSTRAP, JobState.RUNNING, started_at=NOW - 9 * MINUTE, ended_at=None)
    done = {
        "state": IncidentState.RESOLVED,
        "opened_at": NOW - 3 * HOUR,
        "resolved_at": NOW - 2 * HOUR,
        "resolution": "auto",
    }
    make.incident(Dataset.objects.get(name="airports"), Category.FRESHNESS, title="airports is 41 min behind", **done)


def _commits(copy: Any) -> None:
    for back in range(60, 0, -1):
        day = (NOW - back * DAY).date()
        partition = make.day(day.isoformat())
        make.commit(
            copy,
            NOW - back * DAY + 2 * HOUR,
            (partition,),
            applied=ROWS[day.weekday()] - back % 7,
            superseded=back % 3,
            errors=int(back == 1) * 2,
        )


def _days(test: QualityTest, where: str, value: float, threshold: str, formula: str, *, until: int = 1) -> None:
    """Thirty days that pass, up to `until` days ago."""
    copy = make.copy_of(test.dataset, where)
    for back in range(30, until - 1, -1):
        partition = make.day((NOW - back * DAY).date().isoformat())
        seen = {"formula": formula, "observed": f"{value:.2%}"}
        make.unit(
            test,
            copy,
            partition,
            observed=value,
            threshold=threshold,
            detail=seen,
            latest_at=partition.end + HOUR,
            last_pass_at=partition.end + HOUR,
        )


def _whole(
    test: QualityTest, where: str, verdict: Verdict, value: float, threshold: str, *, observed: str, line: list[float]
) -> Unit:
    """A test of everything with a run an hour."""
    expression = test.version.expression if test.version else ""
    seen = {"formula": expression, "observed": observed}
    facts = {"observed": value, "threshold": threshold, "detail": seen, "latest_at": NOW - 4 * MINUTE}
    if verdict is Verdict.PASS:
        facts |= {"last_pass_at": NOW - 4 * MINUTE, "affected_from": make.day("2026-11-17").start}
    unit = make.unit(test, make.copy_of(test.dataset, where), verdict=verdict, **facts)
    for at, observed_value in enumerate(line):
        make.result(
            unit, Outcome.PASS, read_at=NOW - (len(line) - at) * HOUR, observed=observed_value, threshold=threshold
        )
    outcome = Outcome.FAIL if verdict is Verdict.FAIL else Outcome.PASS
    make.result(unit, outcome, read_at=NOW - 4 * MINUTE, observed=value, threshold=threshold, detail=seen)
    return unit
