"""Events posted one by one, in any order and more than once, say the same as all of them in a folder; hostile ones are refused by name."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lakehub.catalog.lineage import LineageSnapshot, TableName
from lakehub.catalog.lineage.events import snapshot_of_events, snapshot_of_runs
from lakehub.catalog.lineage.posted_events import (
    MAX_LINKS,
    MAX_TABLES,
    MAX_WORDS,
    WINDOW,
    PostedEvent,
    PostedState,
    merge_event,
    newest_of,
    parse_posted_event,
)
from lakehub.kernel.errors import Refused
from tests.lineage_events import event, table

NOW = datetime(2026, 11, 17, 9, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
TABLES = [f"ops/t{number}" for number in range(5)]


def parse(body: Any) -> PostedEvent:
    parsed = parse_posted_event(body, now=NOW)
    assert parsed is not None
    return parsed


def state_of(*bodies: dict[str, Any]) -> PostedState:
    state = None
    for body in bodies:
        state = merge_event(state, parse(body))
    assert state is not None
    return state


def reduced(bodies: Iterable[dict[str, Any]]) -> LineageSnapshot:
    """What is kept of each job, as the rows have it."""
    newest: dict[tuple[str, str], PostedState] = {}
    open_runs: dict[str, PostedState] = {}
    for body in bodies:
        posted = parse(body)
        job, number = posted.run.job, posted.run.number
        known = newest.get(job)
        is_newest = known is not None and known.run.number == number
        merged = merge_event(known if is_newest else open_runs.get(number), posted)
        if merged.run.ended_at is None:
            open_runs[number] = merged
        else:
            newest[job] = merged if known is None or is_newest else newest_of(known, merged)
            open_runs.pop(number, None)
    stored = [json.loads(json.dumps(state.dump())) for state in newest.values()]
    again = [
        PostedState.load(state.run.number, state.run.job, state.run.ended_at, dumped)
        for state, dumped in zip(newest.values(), stored, strict=True)
    ]
    return snapshot_of_runs(run for state in again for run in state.runs(since=NOW - WINDOW))


@pytest.mark.parametrize("seed", range(60))
def test_in_any_order_and_repeated_they_say_what_a_folder_says(seed: int) -> None:
    draw = random.Random(seed)
    bodies = []
    for number in range(draw.randint(1, 12)):
        job, at = f"job-{draw.randint(0, 2)}", NOW - draw.randint(2, 90) * MINUTE
        run = f"run-{number}"
        inputs = [table(name, one_to_one=draw.random() < 0.3) for name in draw.sample(TABLES, draw.randint(0, 2))]
        outputs = [table(name, dropped=draw.random() < 0.4) for name in draw.sample(TABLES, draw.randint(1, 2))]
        if draw.random() < 0.5:
            bodies.append(event(job, at - MINUTE, kind="START", inputs=inputs, run=run))
            inputs = []
        bodies.append(event(job, at, inputs, outputs, run=run))
    starts = [body for body in bodies if body["eventType"] == "START"]
    ends = [body for body in bodies if body["eventType"] == "COMPLETE"]
    posted = [*starts, *draw.choices(starts, k=2 if starts else 0)]
    draw.shuffle(posted)
    shuffled = [*ends, *draw.choices(ends, k=3)]
    draw.shuffle(shuffled)
    assert reduced([*posted, *shuffled]) == snapshot_of_events(bodies, now=NOW)


def test_a_start_that_comes_last_still_names_the_inputs() -> None:
    start = event("load", NOW - MINUTE, [table("ops/a", one_to_one=True)], kind="START", run="1")
    end = event("load", NOW, outputs=[table("ops/b")], run="1")
    assert reduced([end, start]) == reduced([start, end]) == snapshot_of_events([start, end], now=NOW)


def test_a_time_in_the_future_counts_as_now() -> None:
    """Or it would hold the job up for years."""
    body = event("load", NOW, [table("ops/a")], [table("ops/b")]) | {"eventTime": "9999-12-31T23:59:59Z"}
    assert (parse(body).at, parse(body).run.ended_at) == (NOW, NOW)


def test_what_earlier_runs_wrote_or_dropped_is_bounded() -> None:
    state = state_of(event("load", NOW - 60 * MINUTE, outputs=[table("ops/first")]))
    for minute in range(59, 55, -1):
        tables = [table(f"ops/{minute}-{number}", dropped=True) for number in range(MAX_TABLES // 2)]
        state = newest_of(state, state_of(event("load", NOW - minute * MINUTE, outputs=tables)))
    assert len(state.words) == MAX_WORDS
    assert TableName("ops", "first") not in state.words


@pytest.mark.parametrize(
    "body",
    [
        {"dataset": {"namespace": "ops", "name": "a"}, "eventTime": "2026-11-17T08:00:00Z"},
        {"job": {"namespace": "ops", "name": "a"}, "inputs": [], "eventTime": "2026-11-17T08:00:00Z"},
    ],
)
def test_events_without_a_run_say_nothing(body: Any) -> None:
    assert parse_posted_event(body, now=NOW) is None


def without(field: str) -> dict[str, Any]:
    return {name: value for name, value in event("load", NOW).items() if name != field}


def changed(**fields: Any) -> dict[str, Any]:
    return event("load", NOW) | fields


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        (changed(eventType="COMPLETED"), "eventType", "'COMPLETED': write one of START.*Did you mean"),
        (changed(eventType={"a": 1}), "eventType", "is an object"),
        (changed(eventType="X" * 100_000), "eventType", "…: write one of"),
        (without("eventTime"), "eventTime", "is missing or null: write a time with an offset"),
        (changed(eventTime="2026-11-17T08:00:00"), "eventTime", "'2026-11-17T08:00:00': write a time with an offset"),
        (changed(eventTime="0001-01-01T00:00:00+23:00"), "eventTime", "write a time"),
        (changed(eventTime=5), "eventTime", "is 5: write"),
        (without("run"), "run.runId", "is missing or null"),
        (changed(run={"runId": ["a"]}), "run.runId", "is a list"),
        (changed(run={"runId": "1" * 101}), "run.runId", "101 bytes long.*at most 100 bytes"),
        (changed(job="load"), "job", "is a text: write an object with a namespace and a name"),
        (changed(job={"namespace": " ", "name": "x"}), "job.namespace", "' ': write a text"),
        (changed(job={"namespace": "a", "name": "ä" * 251}), "job.name", "502 bytes long.*at most 500"),
        (changed(inputs={"a": 1}), "inputs", "is an object: write a list"),
        (changed(inputs=[None]), "inputs[0]", "is missing or null"),
        (changed(outputs=[table("ops/a"), {"namespace": "ops"}]), "outputs[1].name", "is missing or null"),
        (changed(outputs=[table("ops/a") | {"facets": [1]}]), "outputs[0].facets", "leave them out"),
        (changed(inputs=[table("ops/a") | {"facets": {"lakehub": 1}}]), "inputs[0].facets", "leave them out"),
        (changed(inputs=[table("ops/a")] * 501), "inputs", "has 501 tables, and at most 500"),
    ],
)
def test_what_is_wrong_is_told_by_field_with_the_value_and_the_remedy(body: Any, field: str, words: str) -> None:
    with pytest.raises(Refused, match=words) as problem:
        parse_posted_event(body, now=NOW)
    assert list(problem.value.fields) == [field]
    assert len(problem.value.fields[field]) < 300


@pytest.mark.parametrize("body", [[], "x", 1, None])
def test_a_body_is_one_object(body: Any) -> None:
    with pytest.raises(Refused, match="send one OpenLineage event, a JSON object"):
        parse_posted_event(body, now=NOW)


def test_links_of_a_run_are_bounded_however_many_events_tell_them() -> None:
    inputs = [table(f"ops/in{number}") for number in range(100)]
    outputs = [table(f"ops/out{number}") for number in range(MAX_LINKS // 100 + 1)]
    start = parse(event("load", NOW - MINUTE, inputs, kind="START", run="1"))
    with pytest.raises(Refused, match="100 inputs and 21 outputs, 2100 links, and at most 2000"):
        merge_event(merge_event(None, start), parse(event("load", NOW, outputs=outputs, run="1")))


def test_merging_leaves_what_was_known_as_it_was() -> None:
    state = state_of(event("load", NOW - MINUTE, [table("ops/a")], kind="START", run="1"))
    merge_event(state, parse(event("load", NOW, [table("ops/b")], [table("ops/c")], run="1")))
    assert (list(state.run.inputs), state.run.outputs) == ([TableName("ops", "a")], {})
