"""OpenLineage events by POST: edges follow at once, of the team's own datasets, whatever order or shape events come in."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext

from ingestion import tasks
from lakehub.accounts.models import Membership, Role, Team
from lakehub.accounts.tokens import api_tokens
from lakehub.catalog.lineage import LineageSnapshot, TableLink, TableName, daily, edges, posted
from lakehub.catalog.models import Dataset, LineageDay, LineageEdge, LineageLink, LineageTable, PostedRun
from lakehub.catalog.models.lineage import PIPELINE_SOURCE
from tests import factories as make
from tests.factories import DAY, HOUR, MINUTE, NOW
from tests.lineage_events import event, table
from tests.web.catalog.conftest import known_edges

pytestmark = pytest.mark.django_db
FLIGHTS, DELAYS, AIRLINES = table("ops/flights"), table("ops/delays"), table("ops/airlines")
OF_DELAYS = event("load", NOW - HOUR, [table("ops/flights", one_to_one=True)], [DELAYS])


@pytest.fixture(autouse=True)
def at_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakehub.clock.now", lambda: NOW)


def program(team: Team, role: Role = Role.OWNER, **fields: Any) -> Client:
    """With a token of the team, made by somebody in this role."""
    name = f"{role}-of-{team}"
    person = make.user(name)
    make.member(person, team, role)
    given = {"scopes": ["lineage:write"], "consumer": f"etl-of-{team}", **fields}
    _, text = api_tokens.issue_token(name=name, team=team, created_by=person, now=NOW, **given)
    return Client(headers={"Authorization": f"Bearer {text}"})


@pytest.fixture
def client(ops: Path) -> Client:
    """Of the team whose datasets `ops` has."""
    return program(Dataset.objects.get(name="flights").team)


def post(client: Client, body: Any, query: str = "") -> HttpResponse:
    text = body if isinstance(body, bytes) else json.dumps(body)
    return client.post(f"/api/v1/lineage{query}", text, content_type="application/json")  # type: ignore[return-value]


def result(answer: HttpResponse) -> tuple[int, str]:
    return answer.status_code, json.loads(answer.content)["result"]


def fields_of(answer: HttpResponse) -> dict[str, str]:
    assert answer.status_code == 422, answer.content
    fields: dict[str, str] = json.loads(answer.content)["error"]["fields"]
    return fields


def test_an_event_makes_edges_at_once(client: Client) -> None:
    answer = post(client, OF_DELAYS)
    assert answer.status_code == 201
    assert json.loads(answer.content) == {
        "result": "completed", "added": ["flights → delays (one to one)"], "pruned": []
    }  # fmt: skip
    assert known_edges() == {"flights → delays one to one"}
    assert LineageEdge.objects.get().source == posted.POSTED_SOURCE
    assert Dataset.objects.get(name="delays").metadata_version == 2


def test_a_start_names_the_inputs_and_the_end_the_outputs(client: Client) -> None:
    start = event("load", NOW - HOUR, [FLIGHTS], kind="START", run="1")
    assert result(post(client, start)) == (201, "open")
    assert known_edges() == set()
    assert result(post(client, event("load", NOW - MINUTE, outputs=[DELAYS], run="1"))) == (201, "completed")
    assert known_edges() == {"flights → delays"}


def test_the_newest_run_decides_and_older_and_repeated_ones_change_nothing(client: Client) -> None:
    newest = event("load", NOW - MINUTE, [AIRLINES], [DELAYS])
    for body in (OF_DELAYS, newest):
        post(client, body)
    assert known_edges() == {"airlines → delays"}
    for body in (OF_DELAYS, newest, OF_DELAYS, event("load", NOW - 2 * HOUR, [FLIGHTS], [DELAYS])):
        answer = json.loads(post(client, body).content)
        assert (answer["added"], answer["pruned"]) == ([], [])
    assert known_edges() == {"airlines → delays"}
    assert PostedRun.objects.count() == 1


@pytest.mark.parametrize(
    "body",
    [
        event("load", NOW, kind="START"),
        event("load", NOW, kind="RUNNING"),
        event("load", NOW),
        event("load", NOW, [FLIGHTS], [DELAYS], kind="FAIL"),
        event("load", NOW - 31 * DAY, [FLIGHTS], [DELAYS]),
        {"dataset": FLIGHTS, "eventTime": NOW.isoformat()},
        {
            "job": {"namespace": "a", "name": "b"},
            "inputs": [FLIGHTS],
            "outputs": [DELAYS],
            "eventTime": NOW.isoformat(),
        },
    ],
)
def test_events_that_say_nothing_are_accepted(client: Client, body: Any) -> None:
    assert result(post(client, body)) == (200, "ignored")
    assert (PostedRun.objects.count(), LineageLink.objects.count()) == (0, 0)


def test_a_run_that_failed_leaves_nothing(client: Client) -> None:
    post(client, event("load", NOW - HOUR, [FLIGHTS], kind="START", run="1"))
    assert result(post(client, event("load", NOW, kind="ABORT", run="1"))) == (200, "ignored")
    assert PostedRun.objects.count() == 0


def test_a_time_years_ahead_does_not_hold_the_job_up(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    post(client, OF_DELAYS | {"eventTime": "2999-01-01T00:00:00Z"})
    monkeypatch.setattr("lakehub.clock.now", lambda: NOW + HOUR)
    post(client, event("load", NOW + MINUTE, [AIRLINES], [DELAYS]))
    assert known_edges() == {"airlines → delays"}


def test_what_was_dropped_makes_nothing_and_is_made_again(client: Client) -> None:
    post(client, OF_DELAYS)
    post(client, event("drop", NOW - 30 * MINUTE, outputs=[table("ops/delays", dropped=True)]))
    assert known_edges() == set()
    post(client, event("drop", NOW - 20 * MINUTE, outputs=[table("ops/airlines", dropped=True)]))
    assert known_edges() == set()
    post(client, event("load", NOW - 10 * MINUTE, [table("ops/flights", one_to_one=True)], [DELAYS]))
    assert known_edges() == {"flights → delays one to one"}


# Whose


def test_only_owners_of_the_team_post_with_the_scope_for_it(ops: Path) -> None:
    team = Dataset.objects.get(name="flights").team
    assert post(program(team, Role.ON_CALL), OF_DELAYS).status_code == 403
    assert post(program(team, Role.ADMIN, scopes=["catalog:write"]), OF_DELAYS).status_code == 403
    client = program(team)
    assert post(client, OF_DELAYS).status_code == 201
    Membership.objects.filter(role=Role.OWNER).delete()
    assert post(client, OF_DELAYS).status_code == 403
    assert post(Client(), OF_DELAYS).status_code == 401


def test_another_teams_program_changes_no_lineage_of_a_dataset(client: Client) -> None:
    """Neither adds nor takes away, though its job has the same name; a dataset of its own may be made from another team's."""
    post(client, OF_DELAYS)
    stranger = program(make.team("weather-data"))
    newer = event("load", NOW - MINUTE, [AIRLINES], [DELAYS, FLIGHTS])
    assert json.loads(post(stranger, newer).content)["added"] == []
    post(stranger, event("drop", NOW, outputs=[table("ops/delays", dropped=True)]))
    assert known_edges() == {"flights → delays one to one"}
    assert not LineageTable.objects.filter(dropped=True).exists()
    Dataset.objects.filter(name="flights").update(team=make.team("weather-data"))
    post(stranger, event("other", NOW, [AIRLINES], [FLIGHTS]))
    assert known_edges() == {"flights → delays one to one", "airlines → flights"}


def test_a_token_speaks_for_its_team_and_a_person_says_for_which(client: Client) -> None:
    team = Dataset.objects.get(name="flights").team
    other = make.team("weather-data")
    post(client, OF_DELAYS, f"?team={other}")
    assert PostedRun.objects.get().team == team
    ann = make.user("ann")
    make.member(ann, team, Role.OWNER)
    browser = Client()
    browser.force_login(ann)
    assert "?team=" in fields_of(post(browser, OF_DELAYS))["team"]
    assert post(browser, OF_DELAYS, f"?team={other}").status_code == 403
    assert post(browser, OF_DELAYS, f"?team={team}").status_code == 201


def test_what_others_say_stays(client: Client) -> None:
    """The source that is read daily, persons and pipelines; and what is posted stays when the source is read."""
    airlines, flights, delays = (Dataset.objects.get(name=name) for name in ("airlines", "flights", "delays"))
    LineageEdge.objects.create(upstream=flights, downstream=delays, source=PIPELINE_SOURCE)
    make.edge(delays, airlines)
    read = LineageSnapshot(frozenset({TableLink(TableName("ops", "airlines"), TableName("ops", "flights"))}))
    edges.replace_lineage(read, source="file", now=NOW)
    expected = {"flights → delays", "delays → airlines", "airlines → flights", "airlines → delays"}
    post(client, event("own", NOW - HOUR, [FLIGHTS, AIRLINES], [DELAYS]))
    assert known_edges() == expected
    edges.replace_lineage(read, source="file", now=NOW)
    assert known_edges() == expected
    edges.replace_lineage(LineageSnapshot(), source="file", now=NOW)
    assert known_edges() == expected - {"airlines → flights"}
    post(client, event("own", NOW))
    assert known_edges() == {"flights → delays", "delays → airlines"}
    assert LineageEdge.objects.get(upstream=flights).source == PIPELINE_SOURCE


# How much


def test_a_run_that_says_the_same_as_the_one_before_resolves_nothing(client: Client) -> None:
    post(client, OF_DELAYS)
    with CaptureQueriesContext(connection) as seen:
        post(client, event("load", NOW - MINUTE, [table("ops/flights", one_to_one=True)], [DELAYS]))
    assert not [query for query in seen if "lineagelink" in query["sql"].lower()]
    assert len(seen) <= 15, [query["sql"] for query in seen]


def test_queries_do_not_grow_with_what_is_known(client: Client) -> None:
    def queries(number: int) -> int:
        with CaptureQueriesContext(connection) as seen:
            post(client, event(f"job-{number}", NOW - MINUTE, [table(f"ops/in{number}")], [table(f"ops/out{number}")]))
        return len(seen)

    first = [queries(number) for number in range(3)][-1]
    for number in range(10, 40):
        queries(number)
    assert queries(50) == first


def test_an_event_looks_at_no_table_and_no_edge_but_those_that_it_names(client: Client) -> None:
    """Of a team with many others, in an instance with many more."""
    team = Dataset.objects.get(name="flights").team
    others = [make.dataset(f"other{number}", team=team) for number in range(60)]
    far = [table(f"lakehub/{other.name}") for other in others]
    for number, (upstream, downstream) in enumerate(pairwise(far)):
        post(client, event(f"far{number}", NOW - 2 * HOUR, [upstream], [downstream]))
    assert LineageEdge.objects.count() == len(others) - 1
    post(client, event("load", NOW - HOUR, [FLIGHTS, AIRLINES], [DELAYS]))
    with rows_read() as read:
        answer = json.loads(post(client, event("load", NOW - MINUTE, [FLIGHTS, far[0]], [DELAYS])).content)
    assert (answer["added"], answer["pruned"]) == (
        ["other0 → delays (not one to one)"],
        ["airlines → delays (not one to one)"],
    )
    assert max(read["catalog_lineagetable"], read["catalog_lineagelink"], read["catalog_lineageedge"]) <= 8, read


@pytest.mark.parametrize(("seed", "most_named"), [(1, 5_000), (2, 5_000), (3, 5_000), (4, 2)])
def test_what_events_change_is_all_that_a_reading_of_everything_would(
    client: Client, seed: int, most_named: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever they write, drop and write again; also where they name more tables than a query may."""
    monkeypatch.setattr(edges, "_MAX_NAMED", most_named)
    chance, team = Random(seed), Dataset.objects.get(name="flights").team
    names = ("ops/flights", "ops/delays", "ops/airlines", "lakehub/flights", "ops/elsewhere")
    for minute in range(30):
        inputs = [table(name, one_to_one=chance.random() < 0.3) for name in chance.sample(names, chance.randrange(3))]
        outputs = [table(name, dropped=chance.random() < 0.2) for name in chance.sample(names, chance.randrange(3))]
        at = NOW - 2 * HOUR + chance.randrange(minute + 1) * MINUTE
        post(client, event(f"job{chance.randrange(4)}", at, inputs, outputs, run=str(minute)))
        links, edges_now = links_of(team), known_edges()
        whole = posted._snapshot(team, NOW)
        edges.replace_lineage(whole, source=posted.POSTED_SOURCE, team=team, accept_loss=True, now=NOW)
        assert (links, edges_now) == (links_of(team), known_edges())


def links_of(team: Team) -> set[str]:
    return {
        f"{link} {link.one_to_one}"
        for link in LineageLink.objects.filter(team=team).select_related("upstream", "downstream")
    }


_COUNT = "SELECT count(*) FROM ("


@contextmanager
def rows_read() -> Iterator[Counter[str]]:
    """By table how many rows the greatest answer has of all queries that are made from it."""
    read = Counter[str]()

    def counted(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith("SELECT") and ' FROM "' in sql and not sql.startswith(_COUNT):
            name = sql.partition(' FROM "')[2].partition('"')[0]
            with connection.cursor() as cursor:
                cursor.execute(f"{_COUNT}{sql}) AS counted", params)
                read[name] = max(read[name], cursor.fetchone()[0])
        return execute(sql, params, many, context)

    with connection.execute_wrapper(counted):
        yield read


def test_a_dataset_that_is_onboarded_later_has_its_edges_after_the_daily_look(client: Client) -> None:
    post(client, event("later", NOW - HOUR, [FLIGHTS], [table("lakehub/later")]))
    make.dataset("later", team=Dataset.objects.get(name="flights").team)
    assert known_edges() == set()
    tasks.check_lineage()
    assert known_edges() == {"flights → later"}


def test_of_a_team_so_many_jobs_are_kept_and_runs_at_work_make_room(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posted, "MAX_RUNS", 2)
    for minute in (3, 2, 1):
        assert post(client, event(f"open-{minute}", NOW - minute * MINUTE, [FLIGHTS], kind="START")).status_code == 201
    assert set(PostedRun.objects.values_list("job_name", flat=True)) == {"open-2", "open-1"}
    for name in ("a", "b"):
        post(client, event(name, NOW, [FLIGHTS], [DELAYS]))
    answer = json.loads(post(client, event("c", NOW, [FLIGHTS], [DELAYS])).content)
    assert "has posted events of 2 jobs, and no more are kept" in answer["error"]["message"]
    assert set(PostedRun.objects.values_list("job_name", flat=True)) == {"a", "b"}


def test_links_of_a_team_are_bounded_and_nothing_is_kept_of_what_is_beyond(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posted, "MAX_TEAM_LINKS", 1)
    post(client, OF_DELAYS)
    answer = post(client, event("more", NOW, [AIRLINES], [FLIGHTS]))
    assert (answer.status_code, PostedRun.objects.count()) == (422, 1)
    assert "tell of 2 links, and at most 1 are taken" in json.loads(answer.content)["error"]["message"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"[" * 50_000, 400),
        (b'{"run":' * 50_000, 400),
        (b"not json", 400),
        (b'{"eventTime": "a\\u0000b"}', 400),
        (b'{"eventTime": "\\ud800"}', 400),
        (b'{"a": "' + b"x" * 1_100_000 + b'"}', 413),
        (b"[]", 422),
        (b"null", 422),
        (b"{}", 422),
        (b'{"eventType": ' + b"9" * 4000 + b"}", 422),
        (json.dumps(OF_DELAYS | {"inputs": "x"}).encode(), 422),
    ],
)
def test_what_nobody_means_well_is_refused(client: Client, body: bytes, status: int) -> None:
    answer = post(client, body)
    assert answer.status_code == status, answer.content[:300]
    assert len(answer.content) < 3_000
    assert PostedRun.objects.count() == 0


def test_the_longest_names_are_kept(client: Client) -> None:
    body = OF_DELAYS | {"job": {"namespace": "😀" * 50, "name": "'\"\\;%s" * 71}, "run": {"runId": "r" * 100}}
    assert result(post(client, body)) == (201, "completed")


# In time


def test_jobs_that_have_not_run_for_long_are_forgotten_once_a_day(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks.check_lineage()
    assert not LineageDay.objects.exists()
    post(client, OF_DELAYS)
    post(client, event("open", NOW, [FLIGHTS], kind="START"))
    for days, left in ((6, 2), (8, 1), (29, 1), (30, 0)):
        monkeypatch.setattr("lakehub.clock.now", lambda days=days: NOW + timedelta(days=days))
        tasks.check_lineage()
        assert PostedRun.objects.count() == left
    assert known_edges() == set()
    last = LineageDay.objects.latest("day")
    assert (last.source, last.report["pruned"], last.error) == ("posted", ["flights → delays (one to one)"], "")


def test_programs_that_stopped_posting_take_nothing_along(client: Client, ops: Path) -> None:
    inputs = [table(f"ops/t{number}") for number in range(10)]
    post(client, event("many", NOW - 2 * HOUR, [FLIGHTS, *inputs], [DELAYS]))
    later = NOW + 31 * DAY
    _, problem = posted.forget_old_runs(now=later)
    assert "0 links, and of 11 the last time: nothing was changed" in problem
    assert (known_edges(), PostedRun.objects.count()) == ({"flights → delays"}, 1)
    report, error = daily.run_check(None, name="", offboard_after=None, accept_loss=True, now=later)
    assert (report["pruned"], error) == (["flights → delays (not one to one)"], "")
    assert (LineageLink.objects.count(), LineageTable.objects.count(), PostedRun.objects.count()) == (0, 0, 0)
