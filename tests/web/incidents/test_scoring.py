from __future__ import annotations

import json

import pytest
from django.core.management import call_command

from incidents.gate import answer as gate
from incidents.lifecycle import actions, resolution, user_reports
from incidents.lifecycle.intake import process_flips
from incidents.models import Incident
from incidents.scores.scoring import scores_of
from lakehub.kernel.errors import Refused
from lakehub.kernel.interval import Interval
from quality.models import Category, Unit
from tests import factories
from tests.factories import DAY, HOUR, NOW
from tests.web.incidents.failing_dataset import BAD_DAY, DAY_BEFORE, FailingDataset

pytestmark = pytest.mark.django_db

LATER = NOW + 10 * HOUR
WINDOW = Interval(NOW, LATER)


def live_for(stage: FailingDataset, hours: int, category: Category = Category.CONSISTENCY) -> Incident:
    incident = stage.opened(category=category)
    stage.passes(Unit.objects.get(test__category=category), at=NOW + hours * HOUR)
    process_flips(now=NOW + hours * HOUR)
    return incident


def test_scores_are_shares_of_time() -> None:
    stage = FailingDataset()
    live_for(stage, 3)
    wrong = stage.opened(category=Category.DUPLICATES)
    resolution.resolve_by_force(
        wrong.pk, resolution="false_positive", false_positive="wrong_test", why="Fine.", actor="ana", now=NOW + HOUR
    )
    ana = factories.user("ana")
    reported = user_reports.file_report(
        stage.dataset, "others", DAY_BEFORE, text="Odd.", reporter=ana, now=NOW + 5 * HOUR
    )
    actions.acknowledge(reported.pk, actor=ana, now=NOW + 6 * HOUR)
    user_reports.declare_fixed(reported.pk, why="", actor=ana, now=NOW + 7 * HOUR)
    scores = scores_of(WINDOW, now=LATER)
    assert (scores.durations.precision, scores.durations.recall) == (0.75, 0.6)
    assert (scores.incident_share, scores.quality) == (0.5, 0.5)
    assert [(score.dataset, score.quality) for score in scores.datasets] == [("flights", 0.5)]


def test_what_is_open_counts_to_now_and_is_named() -> None:
    incident = FailingDataset().opened()
    scores = scores_of(WINDOW, now=LATER)
    assert (scores.durations.tp, scores.unsettled) == (10 * HOUR, (incident.pk,))


def test_questions_that_met_bad_data_count_once_a_request() -> None:
    stage = FailingDataset()
    live_for(stage, 3)
    for hours, request_id in ((1, "a"), (2, "a"), (5, "b")):
        gate.ask_gate(gate.CopyQuestion("flights", BAD_DAY, "etl", "dc2", request_id), now=NOW + hours * HOUR)
    scores = scores_of(WINDOW, now=LATER)
    assert (scores.queries.failed, scores.queries.asked) == (1, 2)


def test_a_job_that_asks_again_under_one_name_counts_in_every_window_that_it_asks_in() -> None:
    stage = FailingDataset()
    live_for(stage, 3)
    for hours in (1, 2, 5, 8):
        gate.ask_gate(gate.CopyQuestion("flights", BAD_DAY, "etl", "dc2", "the job"), now=NOW + hours * HOUR)
    query_levels = [
        scores_of(Interval(NOW + a * HOUR, NOW + b * HOUR), now=LATER).queries
        for a, b in ((0, 3), (2, 6), (3, 9), (9, 10))
    ]
    assert [(level.failed, level.asked) for level in query_levels] == [(1, 1), (1, 1), (0, 1), (0, 0)]


def test_a_grace_period_is_left_out() -> None:
    stage = FailingDataset(grace_until=NOW + HOUR)
    live_for(stage, 3)
    assert scores_of(WINDOW, now=LATER).durations.tp == 2 * HOUR


def test_a_window_that_is_not_over_is_refused() -> None:
    with pytest.raises(Refused, match="which has not come yet"):
        scores_of(WINDOW, now=NOW)


# On the command line


def test_the_gate_on_the_command_line_ends_with_3_where_it_blocks(capsys: pytest.CaptureFixture[str]) -> None:
    incident = FailingDataset().opened()
    with pytest.raises(SystemExit) as ended:
        call_command("gate", "flights", "2026-11-16", "2026-11-17", dc="dc2", json=True)
    reply = json.loads(capsys.readouterr().out)
    assert (ended.value.code, reply["verdict"], reply["incidents"]) == (3, "fail", [incident.pk])


def test_incidents_are_listed_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    incident = FailingDataset().opened()
    call_command("incidents", "flights")
    call_command("incidents", json=True)
    line, row = capsys.readouterr().out.splitlines()
    assert line.startswith(f"#{incident.pk}")
    assert json.loads(row)["id"] == incident.pk


def test_the_table_of_moves_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("lifecycle")
    assert "| open | acknowledge | acknowledged |" in capsys.readouterr().out


def test_days_before_monitoring_do_not_count() -> None:
    stage = FailingDataset()
    stage.dataset.copies.update(monitored_from=NOW + 5 * HOUR)
    live_for(stage, 6)
    (score,) = scores_of(WINDOW, now=LATER + DAY).datasets
    assert score.incident_share == 0.2
