"""One test: what it asks, its history, versions and results, running and retiring it, and its results as CSV."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from frontend.screens.quality_test import csv_export, queries
from frontend.screens.quality_test.csv_export import escape_formula
from lakehub.accounts.models import AuditEntry
from lakehub.catalog.models import Dataset
from quality.models import Category, QualityTest, QualityTestVersion, Unit
from tests import factories as make
from tests.query_plans import plans_of


@pytest.fixture
def consistency(flights: Dataset) -> QualityTest:
    return QualityTest.objects.get(dataset=flights, category=Category.CONSISTENCY)


def at(test: QualityTest, rest: str = "") -> str:
    return f"/datasets/flights/tests/{test.key}{rest}"


def html_of(page: Client, where: str) -> str:
    return page.get(where).content.decode()


def text_of(page: Client, where: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", html_of(page, where)))


def rows_of(answer: Any) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(b"".join(answer.streaming_content).decode())))


def test_the_first_lines_say_what_is_wrong(page: Client, consistency: QualityTest) -> None:
    text = text_of(page, at(consistency))
    assert "Mon 16 Nov in dc2: 98.98% (975 of 985), needs &gt; 99.9%. Incident #" in text


def test_it_shows_what_it_asks_in_both_forms(page: Client, consistency: QualityTest) -> None:
    flat = "gt(div(min(rows(this), rows(this@dc1)), rows(this@dc1)), 99.9%) with sustain=30m"
    QualityTestVersion.objects.filter(test=consistency).update(flattened=flat)
    text = text_of(page, at(consistency))
    assert "min(rows(this), rows(this@dc1)) / rows(this@dc1) &gt; 99.9%" in text
    assert flat.replace(">", "&gt;") in text
    assert "Measuresrows(this), rows(this@dc1)" in text
    assert "Sustain30 min" in text


def test_versions_say_what_changed_and_because_of_what(page: Client, consistency: QualityTest) -> None:
    assert consistency.version is not None
    new = QualityTestVersion.objects.get(pk=consistency.version.pk)
    new.pk, new.number, new.created_at = None, 2, make.NOW - make.DAY  # type: ignore[assignment]  # a copy of the row
    new.flattened = new.flattened.replace("99.9%", "99%")
    new.because, new.sustain = "tier 2 now", make.HOUR
    new.save()
    QualityTest.objects.filter(pk=consistency.pk).update(version=new)
    text = text_of(page, at(consistency))
    assert "Version 2" in text
    assert "Because of tier 2 now." in text
    assert "Threshold: &gt; 99.9% becomes &gt; 99%" in text
    assert "2h becomes 1h" in text


def test_the_plot_has_the_threshold_and_the_incident_shaded(page: Client, consistency: QualityTest) -> None:
    plot = json.loads(
        re.findall(r'<script id="plot" type="application/json">(.*?)</script>', html_of(page, at(consistency)))[0]
    )
    assert (plot["limit"], plot["points"][-1]["state"]) == (0.999, "fail")
    assert plot["shades"][0]["label"].startswith("#")


def test_results_come_newest_first_by_outcome_and_by_page(page: Client, consistency: QualityTest) -> None:
    unit = Unit.objects.get(test=consistency, verdict="fail")
    for minutes in range(40):
        make.result(unit, read_at=make.NOW - minutes * make.MINUTE, observed=1.0, threshold="> 99.9%")
    html = html_of(page, at(consistency))
    assert "48 results" in html
    assert "Page 1 of 2" in html
    assert "late data" not in html
    assert "late data" in html_of(page, at(consistency, "?page=2"))
    assert "7 results" in html_of(page, at(consistency, "?outcome=fail"))
    assert "No result of this kind" in html_of(page, at(consistency, "?outcome=error"))


def test_a_test_that_passes_says_so(page: Client) -> None:
    keys = QualityTest.objects.get(dataset__name="flights", category=Category.DUPLICATES)
    assert "0.00% in dc1, 0.00% in dc2, needs &lt; 0.1%. Every data range passes." in text_of(page, at(keys))


def test_a_retired_test_keeps_its_page(page: Client, consistency: QualityTest) -> None:
    QualityTest.objects.filter(pk=consistency.pk).update(retired_at=make.NOW)
    html = html_of(page, at(consistency))
    assert "Retired" in html
    assert "Run now" not in html


def test_an_unknown_key_names_the_nearest(page: Client, consistency: QualityTest) -> None:
    answer = page.get(f"/datasets/flights/tests/{consistency.key}x")
    assert answer.status_code == 404
    assert f"Did you mean `{consistency.key}`?" in answer.content.decode()


def test_run_now_makes_what_does_not_pass_due(page: Client, consistency: QualityTest) -> None:
    answer = page.post(at(consistency, "/run"), follow=True)
    assert "of Rows of dc1 " in answer.content.decode()
    failing = Unit.objects.get(test=consistency, verdict="fail")
    assert (failing.lane, failing.due_at) == (0, failing.due_at)
    assert failing.due_at is not None
    assert failing.due_at <= make.NOW + make.MINUTE


def test_a_test_that_people_wrote_is_retired(page: Client, flights: Dataset) -> None:
    own = make.quality_test(flights, Category.OTHERS, key="own", title="Own")
    QualityTest.objects.filter(pk=own.pk).update(generated=False)
    assert "Retire this test" in html_of(page, at(own))
    page.post(at(own, "/retire"))
    own.refresh_from_db()
    assert own.retired_at is not None
    assert AuditEntry.objects.get(action="retire test").detail == {"key": "own"}


def test_a_generated_test_is_not_retired_by_hand(page: Client, consistency: QualityTest) -> None:
    assert "Retire this test" not in html_of(page, at(consistency))
    answer = page.post(at(consistency, "/retire"), follow=True)
    assert "is generated" in answer.content.decode()
    consistency.refresh_from_db()
    assert consistency.retired_at is None


def test_a_viewer_sees_no_controls_and_may_use_none(guest: Client, flights: Dataset) -> None:
    own = make.quality_test(flights, Category.OTHERS, key="own", title="Own")
    QualityTest.objects.filter(pk=own.pk).update(generated=False)
    html = html_of(guest, at(own))
    assert not re.search(r"Run now|Edit…|Retire this test", html)
    assert guest.post(at(own, "/run")).status_code == 403
    assert guest.post(at(own, "/retire")).status_code == 403
    assert guest.get(at(own, "/edit")).status_code == 403
    assert guest.get("/datasets/flights/new-test").status_code == 403
    assert "Add a test" not in html_of(guest, "/datasets/flights")


def test_csv_has_the_results_in_utc(page: Client, consistency: QualityTest) -> None:
    answer = page.get(at(consistency, "/results.csv?outcome=fail"))
    rows = rows_of(answer)
    assert answer.headers["Content-Disposition"] == f'attachment; filename="flights.{consistency.key}.csv"'
    assert len(rows) == 7
    assert rows[-1] == {
        "read_at": "2026-11-17T15:40:00Z",
        "data_range": "2026-11-16",
        "data_center": "dc2",
        "outcome": "fail",
        "observed": "0.98985",
        "threshold": "> 99.9%",
        "trigger": "late_data",
        "commit": "",
        "test_version": "1",
        "seconds": "2.000",
        "why": "",
    }


def test_csv_is_bounded_and_takes_a_few_queries(
    page: Client, consistency: QualityTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_export, "MAX_ROWS", 3)
    with CaptureQueriesContext(connection) as seen:
        answer = page.get(at(consistency, "/results.csv"))
        assert len(rows_of(answer)) == 3
    assert answer.headers["X-Most-Rows"] == "3"
    assert len(seen) <= 8


def test_csv_is_for_people_who_are_signed_in(client: Client, consistency: QualityTest) -> None:
    assert client.get(at(consistency, "/results.csv")).status_code == 302


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1"])
def test_what_a_spreadsheet_takes_for_a_formula_is_defused(text: str) -> None:
    assert escape_formula(text) == f"'{text}"
    assert escape_formula(f"x{text}") == f"x{text}"


def test_a_cause_that_is_a_formula_is_defused_in_the_file(page: Client, consistency: QualityTest) -> None:
    unit = Unit.objects.get(test=consistency, verdict="fail")
    make.result(unit, "error", read_at=make.NOW, detail={"cause": '=HYPERLINK("http://x")'})  # type: ignore[arg-type]
    assert rows_of(page.get(at(consistency, "/results.csv?outcome=error")))[0]["why"] == '\'=HYPERLINK("http://x")'


def test_the_results_of_one_test_are_found_by_their_units(flights: Dataset, consistency: QualityTest) -> None:
    """Of three million results that are kept, none but its own are read."""
    (plan,) = plans_of(lambda: list(queries.results_of_test(consistency, None)[:25]))
    assert "result_newest_of_unit" in plan or "quality_result_unit" in plan
    assert "result_by_age" not in plan
    assert "SCAN quality_result" not in plan
