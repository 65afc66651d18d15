"""A pipeline that has finished is tested at once: told with a token, by a signed hook, on the command line, by a commit of ours."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.test import Client

from ingestion.lake import commits
from lakehub.accounts.models import AuditEntry, Role, User
from lakehub.accounts.tokens import api_tokens
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.processes.celery_app import app
from quality import tasks
from quality.domain.request_signature import MAX_CLOCK_SKEW, sign_body
from quality.execution import retention
from quality.models import ExternalRun, Lane, PipelineHook, QualityTest, Unit
from quality.state.dataset_slas import slas_or_tier_defaults
from tests import factories as make
from tests.factories import DAY, HOUR, MINUTE, NOW, day
from tests.web.ingestion import hudi_timeline

pytestmark = pytest.mark.django_db

FINISHED = "/api/v1/pipelines/finished"
HOOKS = "/api/v1/pipelines/hooks"
OLD, YESTERDAY, TODAY = day("2026-10-01"), day("2026-11-16"), day("2026-11-17")
BODY = {"dataset": "flights", "from": "2026-11-16", "to": "2026-11-17", "run_id": "nightly-814"}


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakehub.clock.now", lambda: NOW)


@pytest.fixture
def woken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []
    monkeypatch.setattr(app, "send_task", lambda name, **_: names.append(name))
    return names


@pytest.fixture
def flights() -> Dataset:
    return make.dataset("flights", tier=2)


@pytest.fixture
def duplicates(flights: Dataset) -> QualityTest:
    """Of the SLA that a partition must be whole 30 hours after its end."""
    return make.quality_test(flights, due_after=30 * HOUR)


@pytest.fixture
def ines(flights: Dataset) -> User:
    person = make.user("ines")
    make.member(person, flights.team, Role.OWNER)
    return person


@pytest.fixture
def tool(ines: User) -> Client:
    return with_token(ines)


def with_token(person: User, team: str = "flight-ops", scopes: tuple[str, ...] = ("quality:run",)) -> Client:
    _, text = api_tokens.issue_token(
        name="airflow", consumer=f"{team}-etl", team=make.team(team), created_by=person, scopes=scopes, now=NOW
    )
    return Client(headers={"Authorization": f"Bearer {text}"})


def tell(client: Client, **changes: str) -> Any:
    return client.post(FINISHED, BODY | changes, content_type="application/json")


def waiting(test: QualityTest, over: Any) -> Unit:
    """A unit that was never run and waits for its SLA."""
    assert test.version is not None
    return Unit.objects.create(
        test=test, copy=test.dataset.copies.get(), start=over.start, end=over.end, due_at=over.end + 30 * HOUR
    )


def due(unit: Unit) -> tuple[Any, int]:
    unit.refresh_from_db()
    return unit.due_at, unit.lane


def test_a_partition_that_waits_for_its_sla_is_tested_at_once(tool: Client, duplicates: QualityTest) -> None:
    unit = waiting(duplicates, YESTERDAY)
    answer = tell(tool, link="https://airflow.example/runs/814")
    assert answer.status_code == 201
    assert due(unit) == (NOW, Lane.DUE)
    shown = answer.json()
    assert (shown["made_due"], shown["data_center"], shown["told_by"], shown["via"]) == (1, "dc1", "ines", "airflow")
    assert shown["start"] == "2026-11-16T05:00:00Z"


def test_history_goes_behind_what_is_due(tool: Client, duplicates: QualityTest) -> None:
    recent, old = make.unit(duplicates, over=YESTERDAY), make.unit(duplicates, over=OLD)
    assert tell(tool, **{"from": "2026-10-01"}).json()["made_due"] == 2
    assert (due(recent), due(old)) == ((NOW, Lane.DUE), (NOW, Lane.LATE))
    # Until the retest has passed, the gate knows that what it tested is not what is there.
    assert (recent.touched_at, recent.retest_due_at) == (NOW, NOW + 10 * MINUTE)


def test_a_partition_that_goes_on_waits_and_the_next_one_is_left_alone(tool: Client, duplicates: QualityTest) -> None:
    today, other = waiting(duplicates, TODAY), make.unit(duplicates, over=day("2026-11-15"))
    assert tell(tool, to="2026-11-18").json()["made_due"] == 0
    assert due(today) == (TODAY.end + 30 * HOUR, Lane.DUE)
    assert due(other) == (None, Lane.DUE)


def test_tests_of_the_whole_table_look_at_once(tool: Client, flights: Dataset) -> None:
    freshness = make.unit(make.quality_test(flights, check_name="freshness", cadence=HOUR), due_at=NOW + HOUR)
    tell(tool)
    assert due(freshness) == (NOW, Lane.DUE)


def test_what_searches_the_whole_table_once_a_day_waits_for_its_day(tool: Client, flights: Dataset) -> None:
    search = make.quality_test(flights, check_name="repeated_keys", cadence=DAY, rerun_base=DAY)
    unit = make.unit(search, due_at=NOW + HOUR)
    tell(tool)
    assert due(unit) == (NOW + HOUR, Lane.DUE)


def test_what_is_due_in_a_late_lane_already_comes_forward(tool: Client, duplicates: QualityTest) -> None:
    unit = make.unit(duplicates, over=YESTERDAY, due_at=NOW - MINUTE, lane=Lane.LATE)
    tell(tool)
    assert due(unit) == (NOW - MINUTE, Lane.DUE)


def test_told_twice_nothing_happens(
    tool: Client, duplicates: QualityTest, woken: list[str], django_capture_on_commit_callbacks: Any
) -> None:
    unit = make.unit(duplicates, over=YESTERDAY)
    with django_capture_on_commit_callbacks(execute=True):
        first = tell(tool)
        Unit.objects.filter(pk=unit.pk).update(due_at=None)
        again = tell(tool)
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == first.json()
    assert due(unit)[0] is None
    assert woken == ["quality.tasks.run_due"]
    assert AuditEntry.objects.filter(action="pipeline finished", subject="copy:flights@dc1").count() == 1


def test_the_same_run_with_another_range_is_a_conflict(tool: Client, duplicates: QualityTest) -> None:
    tell(tool)
    answer = tell(tool, to="2026-11-18")
    assert answer.status_code == 409
    assert "Another run needs another run id" in answer.json()["error"]["message"]


def test_two_copies_may_be_written_by_one_run(tool: Client, flights: Dataset) -> None:
    make.copy(flights, "dc2")
    assert [tell(tool, dc=where).status_code for where in ("dc1", "dc2")] == [201, 201]
    assert tell(tool).status_code == 404


@pytest.mark.parametrize(
    ("changes", "status", "says"),
    [
        ({"dataset": "fligths"}, 404, "Did you mean `flights`?"),
        ({"to": "2036-11-17"}, 422, "tell them in pieces"),
        ({"from": ""}, 422, "Say `from`"),
        ({"to": "2026-11-16"}, 422, "not after its start"),
        ({"from": "1066-10-14", "to": "1066-10-15"}, 422, "not after its start"),
        ({"link": "javascript:alert(1)"}, 400, "URL"),
        ({"link": "ftp://example.org/x"}, 400, "https://"),
        ({"run_id": ""}, 400, "blank"),
        ({"dc": "dc7"}, 404, "has no copy in `dc7`"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(
    tool: Client, flights: Dataset, changes: dict[str, str], status: int, says: str
) -> None:
    answer = tell(tool, **changes)
    assert (answer.status_code, says in answer.content.decode()) == (status, True), answer.content
    assert not ExternalRun.objects.exists()


def test_a_table_without_partitions_needs_no_range(tool: Client) -> None:
    planes = make.dataset("planes", by_day=False)
    unit = make.unit(make.quality_test(planes, cadence=DAY))
    answer = tool.post(FINISHED, {"dataset": "planes", "run_id": "1"}, content_type="application/json")
    assert (answer.status_code, due(unit)) == (201, (NOW, Lane.DUE))


def test_it_takes_the_scope_and_the_role_in_the_team_of_the_dataset(ines: User, flights: Dataset) -> None:
    assert tell(with_token(ines, scopes=("quality:read",))).status_code == 403
    make.member(ines, make.team("pricing"), Role.ADMIN)
    assert "acts for team pricing only" in tell(with_token(ines, "pricing")).json()["error"]["message"]
    viewer = make.user("vera")
    make.member(viewer, flights.team, Role.VIEWER)
    assert tell(with_token(viewer)).status_code == 403
    assert tell(Client()).status_code == 401
    assert not ExternalRun.objects.exists()


def test_the_runs_are_listed_newest_first(tool: Client, ines: User, flights: Dataset) -> None:
    for run in ("1", "2"):
        tell(tool, run_id=run)
    listed = with_token(ines, scopes=("quality:read",)).get(FINISHED, {"dataset": "flights"}).json()["results"]
    assert [run["run_id"] for run in listed] == ["2", "1"]


def test_on_the_command_line(flights: Dataset, duplicates: QualityTest) -> None:
    make.unit(duplicates, over=YESTERDAY)
    dates = {"start": "2026-11-16", "end": "2026-11-17"}
    out = StringIO()
    call_command("pipeline_finished", "flights", run_id="814", **dates, stdout=out)
    call_command("pipeline_finished", "flights", run_id="814", **dates, stdout=out)
    call_command("pipeline_finished", "flights", run_id="814", **dates, json=True, stdout=out)
    lines = out.getvalue().splitlines()
    assert lines[0] == "814 of flights@dc1: 1 test runs are due"
    assert lines[1].endswith("as was told before: nothing was changed")
    assert json.loads(lines[2])["again"] is True
    with pytest.raises(CommandError, match="Did you mean `flights`"):
        call_command("pipeline_finished", "fligths", run_id="1", **dates)


# Tools without a token


@pytest.fixture
def hook(ines: User, flights: Dataset) -> PipelineHook:
    browser = Client()
    browser.force_login(ines)
    made = browser.post(HOOKS, {"name": "nifi", "dataset": "flights"}, content_type="application/json")
    assert made.status_code == 201
    assert made.json()["address"] == f"{HOOKS}/{made.json()['key']}/finished"
    return PipelineHook.objects.get(key=made.json()["key"])


def send(hook: PipelineHook, *, secret: str = "", at: Any = NOW, report: dict[str, str] | None = None) -> Any:
    body, timestamp = json.dumps(report or BODY).encode(), str(int(at.timestamp()))
    signed = sign_body(secret or hook.secret, timestamp, body)
    return Client().post(
        f"{HOOKS}/{hook.key}/finished",
        body,
        content_type="application/json",
        headers={"X-Lakehub-Timestamp": timestamp, "X-Lakehub-Signature": signed},
    )


def test_a_signed_report_is_believed_once(hook: PipelineHook, duplicates: QualityTest) -> None:
    unit = make.unit(duplicates, over=YESTERDAY)
    first, again = send(hook), send(hook)
    assert (first.status_code, again.status_code) == (201, 200)
    assert (first.json()["via"], first.json()["told_by"]) == ("nifi", "ines")
    assert due(unit) == (NOW, Lane.DUE)
    hook.refresh_from_db()
    assert hook.last_used_at == NOW


def test_a_replay_is_refused_by_its_time(hook: PipelineHook) -> None:
    for at in (NOW - MAX_CLOCK_SKEW - MINUTE, NOW + MAX_CLOCK_SKEW + MINUTE):
        answer = send(hook, at=at)
        assert (answer.status_code, "minutes apart" in answer.content.decode()) == (401, True)
    assert not ExternalRun.objects.exists()


def test_another_secret_an_unknown_hook_and_a_token_in_its_place_are_refused(hook: PipelineHook, tool: Client) -> None:
    assert send(hook, secret="guessed").status_code == 401
    assert send(PipelineHook(key="ph_000000000000", secret="x")).status_code == 401
    assert tool.post(f"{HOOKS}/{hook.key}/finished", BODY, content_type="application/json").status_code == 401
    assert not ExternalRun.objects.exists()


def test_nothing_is_parsed_before_the_signature_holds(hook: PipelineHook) -> None:
    answer = Client().post(f"{HOOKS}/{hook.key}/finished", b"{", content_type="application/json")
    assert answer.status_code == 401


def test_a_hook_tells_of_its_dataset_only(hook: PipelineHook) -> None:
    make.dataset("planes")
    assert send(hook, report=BODY | {"dataset": "planes"}).status_code == 403
    make.dataset("fares", team=make.team("pricing"))
    assert send(hook, report=BODY | {"dataset": "fares"}).status_code == 403


def test_a_hook_of_a_team_tells_of_all_its_datasets(ines: User, flights: Dataset) -> None:
    make.dataset("planes")
    browser = Client()
    browser.force_login(ines)
    made = browser.post(HOOKS, {"name": "nifi", "team": "flight-ops"}, content_type="application/json").json()
    hook = PipelineHook.objects.get(key=made["key"])
    assert [send(hook, report=BODY | {"dataset": name}).status_code for name in ("flights", "planes")] == [201, 201]


def test_what_its_maker_may_no_longer_do_it_may_not(hook: PipelineHook, ines: User) -> None:
    ines.memberships.update(role=Role.VIEWER)
    assert send(hook).status_code == 403
    User.objects.filter(pk=ines.pk).update(is_active=False)
    assert send(hook).status_code == 401


def test_the_secret_is_shown_once_and_a_hook_revoked_for_good(hook: PipelineHook, ines: User) -> None:
    browser = Client()
    browser.force_login(ines)
    (listed,) = browser.get(HOOKS).json()["results"]
    assert (listed["key"], "secret" in listed) == (hook.key, False)
    stranger = Client()
    stranger.force_login(make.user())
    assert stranger.get(HOOKS).json()["results"] == []
    assert stranger.delete(f"{HOOKS}/{hook.key}").status_code == 403
    assert browser.delete(f"{HOOKS}/{hook.key}").status_code == 204
    assert send(hook).status_code == 401
    assert browser.delete(f"{HOOKS}/{hook.key}").status_code == 404
    actions = AuditEntry.objects.filter(subject=f"hook:{hook.key}").values_list("action", flat=True)
    assert sorted(actions) == ["make pipeline hook", "revoke pipeline hook"]
    assert hook.secret not in json.dumps(list(AuditEntry.objects.values_list("detail", flat=True)))


def test_only_who_onboards_makes_hooks(flights: Dataset, ines: User) -> None:
    oncall = make.user()
    make.member(oncall, flights.team, Role.ON_CALL)
    browser = Client()
    for person, whole, lacking in ((oncall, 403, 403), (ines, 201, 422)):
        browser.force_login(person)
        fields = {"name": "nifi", "dataset": "flights"}
        assert browser.post(HOOKS, fields, content_type="application/json").status_code == whole
        assert browser.post(HOOKS, {"name": "nifi"}, content_type="application/json").status_code == lacking


# Our own jobs


def test_a_commit_of_ours_wakes_who_claims_its_retests(
    duplicates: QualityTest, woken: list[str], tmp_path: Path, django_capture_on_commit_callbacks: Any
) -> None:
    QualityTest.objects.update(generated=False)  # generating the others leaves it
    Dataset.objects.update(freshness_sla=30 * HOUR)  # by which it goes already
    copy = duplicates.dataset.copies.get()
    DatasetCopy.objects.filter(pk=copy.pk).update(uri=tmp_path.as_uri())
    copy.refresh_from_db()
    unit, other = make.unit(duplicates, over=YESTERDAY), make.unit(duplicates, over=day("2026-11-15"))
    hudi_timeline.commit(copy, "20261117100000000", {"2026-11-16": (1, 0, 0)})
    hudi_timeline.commit(copy, "20261117110000000", {"2026-11-16": (2, 0, 0)})
    for _ in range(2):
        with django_capture_on_commit_callbacks(execute=True):
            commits.record_new_commits(copy, now=NOW)
    assert woken == [settings.LAKEHUB_TASK_ON_COMMIT] == [tasks.claim_changes.name], (
        "once for both, and not for a look that found nothing"
    )
    tasks.claim_changes()
    debounce = slas_or_tier_defaults(duplicates.dataset).debounce
    assert (due(unit), due(other)[0]) == ((NOW + debounce, Lane.LATE), None)


def test_the_console_lists_hooks_without_their_secret_and_revokes_them(hook: PipelineHook) -> None:
    ana = make.staff("view_pipelinehook", "change_pipelinehook", "view_externalrun")
    address = "/console/quality/pipelinehook/"
    for where in (address, f"{address}{hook.pk}/change/"):
        shown = ana.get(where).content.decode()
        assert (hook.key in shown or hook.name in shown, hook.secret in shown) == (True, False)
    chosen = {"action": "revoke", "_selected_action": [hook.pk]}
    make.staff("view_pipelinehook").post(address, chosen)
    hook.refresh_from_db()
    assert hook.revoked_at is None
    ana.post(address, chosen)
    hook.refresh_from_db()
    assert hook.revoked_at == NOW
    assert ana.get("/console/quality/externalrun/").status_code == 200


def test_what_finished_long_ago_is_forgotten(tool: Client, flights: Dataset) -> None:
    tell(tool)
    tell(tool, run_id="later")
    ExternalRun.objects.filter(run_id="nightly-814").update(reported_at=NOW - 500 * DAY)
    assert retention.delete_old_external_runs(now=NOW, retention=400 * DAY) == 1
    assert ExternalRun.objects.get().run_id == "later"
