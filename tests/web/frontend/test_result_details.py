"""What a run saw besides its value: missing records by name, groups, what travelled, what was not measured anew, bands."""

from __future__ import annotations

import csv
import html as entities
import io
import json
import re
from typing import Any

import pytest
from django.test import Client

from frontend.results.result_details import UsualBand, result_details, usual_band
from incidents.models import Incident
from lakehub.catalog.models import Dataset
from quality.domain.statistics.anomaly import Baseline, Point, baseline_facts
from quality.models import Category, QualityTest, Unit
from tests import factories as make

BLOOM = {
    "missing": [{"carrier": "UA", "flight": "1545"}, {"carrier": "B6", "flight": "725"}],
    "bloom": {"share": 1, "keys_there": 985, "keys_here": 983, "missing_here": 2, "missing_there": 0, "unseen": 0.0,
              "bytes_moved": 1_830_000, "fpr_asked": 0.001, "fpr_measured": 0.00098},
}  # fmt: skip
DIFFERENCES = {
    "differences": [
        {"kind": "missing", "key": {"carrier": "UA", "flight": "1545"}},
        {"kind": "changed", "key": {"carrier": "B6", "flight": "<725>"}, "columns": {"tailnum": ["N1", None], "dest": ["JFK", "<b>"]}},
        {"kind": "doubled", "key": {"carrier": "DL", "flight": "7"}, "count": 2},
    ],
    "bloom": {"rows_here": 985, "rows_there": 984, "missing": 1, "changed": 1, "doubled": 2, "surplus": 0, "doubled_there": 0,
              "bytes_moved": 4_100, "left_out": ["ratio: DOUBLE, which engines write differently"]},
}  # fmt: skip
GROUPS = {
    "groups": {
        "tested": 12, "failed": 2, "too_small": 3, "over_cap": 0,
        "failing": [{"name": "EWR", "rows": 340, "observed": "12%", "behind": "41 of 340"}, {"name": None, "rows": 44, "observed": "9%"}],
    }
}  # fmt: skip
REUSED = {
    "reused_from": {"read_at": "2026-11-17T17:40:00+00:00", "instant": "20261117173212345", "measures": 2, "of": 3}
}


def of_consistency(**detail: Any) -> QualityTest:
    """The failing consistency test of the fleet, which saw this."""
    test = QualityTest.objects.get(dataset__name="flights", category=Category.CONSISTENCY)
    Unit.objects.filter(test=test, verdict="fail").update(detail=detail)
    return test


def text_of(page: Client, where: str) -> str:
    return entities.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.get(where).content.decode())))


def test_missing_records_are_named_with_what_travelled(page: Client, flights: Dataset) -> None:
    test = of_consistency(**BLOOM)
    text = text_of(page, f"/datasets/flights/tests/{test.key}")
    assert "2 missing records, by name carrier flight UA 1545 B6 725" in text
    assert "Looked at all keys" in text
    assert "Moved 1.8 MB" in text
    assert "False positives asked 0.10% False positives measured 0.10%" in text


def test_records_that_differ_are_named_with_their_columns(page: Client, flights: Dataset) -> None:
    test = of_consistency(**DIFFERENCES)
    text = text_of(page, f"/datasets/flights/tests/{test.key}")
    assert "3 records differ, by name" in text
    assert "Missing carrier UA, flight 1545" in text
    assert "Changed carrier B6, flight <725> tailnum N1 → no value dest JFK → <b>" in text
    assert "Doubled, 2 rows carrier DL, flight 7" in text
    assert "Not compared ratio: DOUBLE, which engines write differently" in text
    assert "Moved 4.1 kB" in text
    assert "names 3 records that differ" in text_of(page, "/datasets/flights")


def differences_csv(page: Client, address: str) -> list[list[str]]:
    answer: Any = page.get(address)
    assert answer.status_code == 200
    return list(csv.reader(io.StringIO(b"".join(answer.streaming_content).decode())))


def test_records_that_differ_are_a_csv_with_a_line_for_each_column(page: Client, flights: Dataset) -> None:
    test = of_consistency(**DIFFERENCES)
    (address,) = re.findall(
        r'href="([^"]+/differences/\d+\.csv)"', page.get(f"/datasets/flights/tests/{test.key}").content.decode()
    )
    header, *lines = differences_csv(page, address)
    assert header[4:] == ["difference", "rows", "column", "here", "there", "carrier", "flight"]
    assert [line[4:] for line in lines] == [
        ["missing", "1", "", "", "", "UA", "1545"],
        ["changed", "1", "tailnum", "N1", "no value", "B6", "<725>"],
        ["changed", "1", "dest", "JFK", "<b>", "B6", "<725>"],
        ["doubled", "2", "", "", "", "DL", "7"],
    ]
    of_consistency(**BLOOM)
    assert page.get(address).status_code == 404


def test_the_incident_has_the_same_csv_which_runs_nothing_in_a_spreadsheet(page: Client, flights: Dataset) -> None:
    formula = {"kind": "changed", "key": {"=id": "+1"}, "columns": {"@name": ["-2", "=cmd|' /C calc'!A0"]}}
    of_consistency(differences=[formula])
    incident = Incident.objects.get(dataset=flights, category=Category.CONSISTENCY)
    assert f"/incidents/{incident.pk}/differences.csv" in page.get(f"/incidents/{incident.pk}").content.decode()
    header, line = differences_csv(page, f"/incidents/{incident.pk}/differences.csv")
    assert (header[9:], line[6:]) == (["'=id"], ["'@name", "'-2", "'=cmd|' /C calc'!A0", "'+1"])


def test_groups_list_the_worst_and_how_many_there_were(page: Client, flights: Dataset) -> None:
    test = of_consistency(**GROUPS)
    text = text_of(page, f"/datasets/flights/tests/{test.key}")
    assert "2 groups of 12 fail 3 groups too small to be judged." in text
    assert "EWR 12% 41 of 340 340 no value 9% 44" in text


def test_what_was_not_measured_anew_says_since_when(page: Client, flights: Dataset) -> None:
    test = of_consistency(**REUSED)
    text = text_of(page, f"/datasets/flights/tests/{test.key}")
    assert "2 of 3 measures are from 12:40 at commit 20261117173212 : that data is unchanged since." in text


def test_the_list_of_tests_says_it_in_a_word(page: Client, flights: Dataset) -> None:
    of_consistency(**BLOOM, **GROUPS, reused_from={**REUSED["reused_from"], "measures": 3})
    text = text_of(page, "/datasets/flights")
    assert "2 groups of 12 fail names 2 missing records measured 12:40 , unchanged since" in text


def test_the_incident_names_them_too(page: Client, flights: Dataset) -> None:
    of_consistency(**BLOOM)
    incident = Incident.objects.get(dataset=flights, category=Category.CONSISTENCY)
    assert "2 missing records, by name" in text_of(page, f"/incidents/{incident.pk}")


@pytest.mark.parametrize(
    "detail", [None, [], "x", {"missing": "all", "groups": [], "bloom": 3, "facts": None, "differences": [3]}]
)
def test_a_detail_of_another_shape_is_nothing(detail: Any) -> None:
    assert not result_details(Unit(detail=detail)).any


def test_the_band_is_read_from_what_the_baseline_explains() -> None:
    explained = baseline_facts(Baseline(940, 985.5, 14, "Mondays", (Point(make.NOW, 985.0),) * 8, ()))
    facts = {"rows(this)": "940", "deviation(rows(this), 8w)": "3.25", **explained}
    assert usual_band(Unit(detail={"facts": facts})) == UsualBand(940, 929.5, 1041.5)


@pytest.mark.parametrize(
    ("series", "usual", "expected"),
    [
        ("1.2%", "1%, from -3% to 5% within 4 spreads of 1%", UsualBand(0.012, -0.03, 0.05)),
        ("3 h 32 min", "3 h, from 2 h to 4 h within 4 spreads of 15 min", UsualBand(12_720, 7_200, 14_400)),
    ],
)
def test_bands_have_the_scale_of_their_series(series: str, usual: str, expected: UsualBand) -> None:
    facts = {"x": series, "deviation(x, 8w)": "1", "usual": usual}
    assert usual_band(Unit(detail={"facts": facts})) == expected


def test_a_test_without_a_past_has_no_band() -> None:
    assert usual_band(Unit(detail={"facts": {"rows(this)": "5"}})) is None


def test_an_anomaly_is_drawn_as_its_series_within_its_band(page: Client, flights: Dataset) -> None:
    test = make.quality_test(flights, Category.OTHERS, key="rows", expression="deviation(rows(this), 8w) < 4")
    copy = make.copy_of(flights, "dc1")
    for back in range(5, 0, -1):
        rows = 980 + back
        facts = {"rows(this)": f"{rows}", "deviation(rows(this), 8w)": "0.5",
                 "usual": "985, from 929 to 1,041 within 4 spreads of 14"}  # fmt: skip
        day = make.day((make.NOW - back * make.DAY).date().isoformat())
        make.unit(test, copy, day, observed=0.5, threshold="< 4", detail={"facts": facts, "observed": "0.5"})
    html = page.get("/datasets/flights/tests/rows").content.decode()
    plot = json.loads(re.findall(r'<script id="plot" type="application/json">(.*?)</script>', html)[0])
    assert [point["value"] for point in plot["points"]] == [985, 984, 983, 982, 981]
    assert (plot["low"][0], plot["high"][0], plot["limit"]) == (929, 1041, None)
    assert "usual, by its own past" in html
