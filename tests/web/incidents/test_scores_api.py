"""Scores, states and the lists behind them, as programs and people ask for them."""

from __future__ import annotations

import csv
import io
import json
import re
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from pytest_django.fixtures import Settings

from incidents.lifecycle import resolution
from incidents.lifecycle.intake import process_flips
from incidents.models import Incident, IncidentState, MessageState
from incidents.record.health import health_of
from lakehub.accounts.models import Role
from lakehub.catalog.models import Dataset
from lakehub.clock.models import ClockShift
from quality.models import Category, Unit
from tests import factories as make
from tests.factories import DAY, HOUR, NOW
from tests.web.incidents.failing_dataset import FailingDataset

pytestmark = pytest.mark.django_db
LATER = NOW + 10 * HOUR
WINDOW = {"from": "2026-11-17T19:32:00Z", "to": "2026-11-18T05:32:00Z"}


@pytest.fixture(autouse=True)
def _ten_hours_later(settings: Settings, db: None) -> None:
    settings.LAKEHUB_CLOCK = "shifted"
    ClockShift.move_to(LATER)


@pytest.fixture
def stage() -> FailingDataset:
    """Three hours that were real, one hour that was a wrong test's, and something open since four hours."""
    failing_dataset = FailingDataset()
    real = failing_dataset.opened()
    failing_dataset.passes(Unit.objects.get(test__category=Category.CONSISTENCY), at=NOW + 3 * HOUR)
    process_flips(now=NOW + 3 * HOUR)
    wrong = failing_dataset.opened(category=Category.DUPLICATES)
    force = {"resolution": "false_positive", "false_positive": "wrong_test", "why": "Fine.", "actor": "ana"}
    resolution.resolve_by_force(wrong.pk, **force, now=NOW + HOUR)
    failing_dataset.opened(category=Category.OTHERS, at=NOW + 6 * HOUR)
    assert real.pk != wrong.pk
    return failing_dataset


@pytest.fixture
def ana(stage: FailingDataset, client: Client) -> Client:
    person = make.user("ana")
    make.member(person, stage.dataset.team, Role.VIEWER)
    client.force_login(person)
    return client


def asked(client: Client, path: str, **params: Any) -> Any:
    answer = client.get(f"/api/v1/{path}", {**WINDOW, **params})
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_the_whole_and_its_groups(ana: Client) -> None:
    scores = asked(ana, "scores", by="category")
    assert (scores["tp"], scores["fp"], scores["precision"]) == (7 * 3600, 3600, 0.875)
    assert (scores["tp_incidents"], scores["fp_incidents"], scores["unsettled_incidents"]) == (2, 1, 1)
    assert (scores["incident_share"], scores["quality"]) == (0.7, pytest.approx(0.3))
    assert (
        scores["times"]["resolve"] | {"incidents": 1, "median": 3 * 3600.0, "waiting": 1} == scores["times"]["resolve"]
    )
    groups = {group["name"]: group for group in scores["groups"]}
    assert (groups["consistency"]["tp"], groups["duplicates"]["precision"]) == (3 * 3600, 0)
    assert groups["duplicates"]["queries"] is None


@pytest.mark.parametrize(("by", "name"), [("team", "flight-ops"), ("tier", "1"), ("dataset", "flights")])
def test_a_group_that_holds_everything_is_the_whole(ana: Client, by: str, name: str) -> None:
    scores = asked(ana, "scores", by=by)
    (group,) = scores["groups"]
    assert group["name"] == name
    assert {key: scores[key] for key in group if key in scores} == {key: group[key] for key in group if key in scores}


def test_groups_come_in_pages(ana: Client) -> None:
    first, second = (asked(ana, "scores", by="test", limit=2, offset=at) for at in (0, 2))
    assert (len(first["groups"]), len(second["groups"]), first["groups_count"]) == (2, 1, 3)
    assert all(group["test"] and group["dataset"] == "flights" for group in first["groups"] + second["groups"])


def test_the_list_behind_a_number_is_what_was_counted(ana: Client) -> None:
    for number in ("tp", "fp", "fn", "unsettled"):
        listed = asked(ana, "incidents", behind=number)
        assert listed["count"] == asked(ana, "scores")[f"{number}_incidents"], number
    assert asked(ana, "incidents", behind="fp", kind="wrong_sla")["count"] == 0
    assert asked(ana, "incidents", behind="tp", category="others", tier=1, team="flight-ops")["count"] == 1


def test_tests_to_tune_are_told_with_the_reason(ana: Client) -> None:
    (noisy_test,) = asked(ana, "scores/noisy-tests")
    assert (noisy_test["dataset"], noisy_test["advice"], noisy_test["precision"]) == ("flights", "tune", 0)
    assert noisy_test["because"] == "Its only incident was false: 1 wrong test"
    assert noisy_test["false_positives"] == {"wrong_test": 1, "wrong_sla": 0, "planned_change": 0}


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"by": "taem"}, "by"), ({"days": "-3", "from": ""}, "days"), ({"team": "nobody"}, "team"), ({"tier": "9"}, "tier"),
        ({"dataset": "fligths"}, "dataset"), ({"to": "2030-01-01"}, "to"), ({"to": "0001-01-01", "from": ""}, "to"),
    ],
)  # fmt: skip
def test_what_is_none_is_refused_by_name(ana: Client, params: dict[str, str], field: str) -> None:
    answer = ana.get("/api/v1/scores", {**WINDOW, **params})
    assert answer.status_code == 422
    assert list(answer.json()["error"]["fields"]) == [field]


@pytest.mark.parametrize("path", ["scores", "scores/noisy-tests", "status", "incidents?behind=tp"])
def test_nobody_reads_scores_without_signing_in(client: Client, path: str) -> None:
    assert client.get(f"/api/v1/{path}").status_code == 401


# The pages


def test_each_link_of_the_page_lists_as_many_incidents_as_it_says(ana: Client) -> None:
    html = ana.get("/scores", {**WINDOW, "by": "category"}).content.decode()
    links = [unescape(link) for link in re.findall(r'href="(/incidents\?behind=[^"]*)"', html)]
    assert links
    for link in links:
        parameters = {name: values[0] for name, values in parse_qs(urlsplit(link).query).items()}
        page = ana.get(link)
        assert page.status_code == 200
        n = asked(ana, "incidents", **parameters)["count"]
        assert n > 0
        assert f"<h1>{n} incident" in page.content.decode(), link


def test_the_file_has_a_line_a_group(ana: Client) -> None:
    answer = ana.get("/scores.csv", {**WINDOW, "by": "test"})
    rows = list(csv.DictReader(io.StringIO(b"".join(answer.streaming_content).decode())))  # type: ignore[attr-defined]
    assert {row["dataset"] for row in rows} == {"flights"}
    assert sorted(float(row["tp_s"]) for row in rows) == [0, 3 * 3600, 4 * 3600]
    assert "attachment" in answer.headers["Content-Disposition"]


def test_a_list_that_is_none_says_why(ana: Client) -> None:
    answer = ana.get("/incidents?behind=tpp")
    assert answer.status_code == 422
    assert "There is no number" in answer.content.decode()


# On the command line


def test_scores_on_the_command_line(stage: FailingDataset, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("scores", by="test", json=True, **WINDOW)
    whole, *groups = map(json.loads, capsys.readouterr().out.splitlines())
    assert (whole["precision"], len(groups)) == (0.875, 3)
    call_command("scores", "flights", days="1")
    assert "87.50%" in capsys.readouterr().out
    call_command("scores", noisy=True)
    assert capsys.readouterr().out.startswith("tune")
    with pytest.raises(CommandError, match="Did you mean `team`"):
        call_command("scores", by="taem")


# States


def failing(name: str, category: Category = Category.DUPLICATES, **fields: Any) -> tuple[Dataset, Incident]:
    dataset = make.dataset(name, **fields)
    unit = make.unit(make.quality_test(dataset, category), verdict="fail")  # type: ignore[arg-type]
    return dataset, make.incident(dataset, category, unit, opened_at=LATER - HOUR)


def states(client: Client) -> dict[str, str]:
    return {row["dataset"]: row["state"] for row in asked(client, "status")["results"]}


def test_what_is_quiet_goes_by_its_name_everywhere(ana: Client) -> None:
    failing("loud")
    failing("settling", grace_until=LATER + DAY)
    _, snoozed = failing("sleeping")
    Incident.objects.filter(pk=snoozed.pk).update(snoozed_until=LATER + DAY)
    _, held = failing("held_back")
    make.message(held, MessageState.HELD, held_by=snoozed)
    wanted = {"loud": "fail", "settling": "grace", "sleeping": "snoozed", "held_back": "suppressed"}
    shown = states(ana)
    assert {name: shown[name] for name in wanted} == wanted
    html = ana.get("/datasets").content.decode()
    for name, state in wanted.items():
        row = html.split(f'href="/datasets/{name}"')[1].split("</tbody>")[0]
        assert f'data-state="{state}"' in row
        assert 'data-state="pass"' not in row.split("</tr>")[0].split("Behind")[0]
        assert f'data-state="{state}"' in ana.get(f"/datasets/{name}").content.decode()
    square = ana.get("/").content.decode().split('class="matrix"')[1]
    assert all(f'data-state="{state}"' in square for state in wanted.values())


def test_one_snoozed_incident_does_not_hide_another_of_its_category(ana: Client) -> None:
    dataset, _ = failing("flights_too")
    test = make.quality_test(dataset, Category.DUPLICATES)
    second = make.incident(dataset, Category.DUPLICATES, make.unit(test, verdict="fail"), opened_at=LATER)  # type: ignore[arg-type]
    Incident.objects.filter(pk=second.pk).update(snoozed_until=LATER + DAY)
    assert states(ana)["flights_too"] == "fail"


def test_a_confirmed_report_fails_what_its_tests_pass(ana: Client) -> None:
    dataset = make.dataset("trusted")
    make.unit(make.quality_test(dataset, Category.DUPLICATES))
    reported = make.incident(dataset, Category.DUPLICATES, reported=True, state=IncidentState.WAITING)
    assert states(ana)["trusted"] == "reported"
    Incident.objects.filter(pk=reported.pk).update(state=IncidentState.ACKNOWLEDGED, acknowledged_at=LATER)
    assert states(ana)["trusted"] == "fail"
    (cell,) = [
        health
        for health in health_of([dataset], now=LATER)[dataset.pk].categories
        if health.category == Category.DUPLICATES
    ]
    assert (cell.verdict, cell.incident and cell.incident.pk) == ("pass", reported.pk)


def test_states_are_narrowed_and_come_worst_first(ana: Client) -> None:
    failing("loud", tier=4)
    make.unit(make.quality_test(make.dataset("quiet", tier=4)))
    status = asked(ana, "status", tier=4)
    assert [(row["dataset"], row["state"]) for row in status["results"]] == [("loud", "fail"), ("quiet", "pass")]
    assert asked(ana, "status", tier=4, state="pass")["count"] == 1
    (cell,) = [category for category in status["results"][0]["categories"] if category["category"] == "duplicates"]
    assert (cell["state"], cell["verdict"], cell["not_passing"]) == ("fail", "fail", 1)
