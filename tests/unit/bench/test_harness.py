from __future__ import annotations

import io
import json
import os
import sys

import pytest

from bench.harness import ChildFailed, Report, Timing, child, markdown, run, timed


@pytest.fixture
def report() -> Report:
    return Report("some", out=io.StringIO())


def test_the_last_line_is_one_json_object_with_figures_and_targets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["some", "--quick"])

    def bench(report: Report) -> None:
        assert report.quick
        report.figure("seconds", 1.5)
        report.at_most("ratio", 3.0, 2, unit="x")

    assert run("some", bench, "About it.") == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == {
        "bench": "some",
        "figures": {"seconds": 1.5},
        "targets": [{"name": "ratio", "want": "<= 2x", "got": "3x", "met": False}],
    }


def test_a_target_is_met_at_its_bound(report: Report) -> None:
    report.at_most("ratio", 2.0, 2)
    report.at_least("speed", 5.0, 5)
    assert [target.met for target in report.targets] == [True, True]


def test_a_table_is_markdown_whose_numbers_stand_right() -> None:
    assert markdown(["tool", "s"], [["Lakehub", "0.25"], ["peer", "12.5"]]).splitlines() == [
        "| tool    |    s |",
        "| ------- | ---: |",
        "| Lakehub | 0.25 |",
        "| peer    | 12.5 |",
    ]


def test_a_timing_has_median_and_extremes_of_its_repeats() -> None:
    timing = Timing((3.0, 1.0, 2.0))
    assert (timing.median, timing.least, timing.most) == (2.0, 1.0, 3.0)


def test_the_warm_up_is_not_timed() -> None:
    calls: list[int] = []
    timing = timed(lambda: calls.append(1), repeats=3, warm_up=2)
    assert (len(calls), len(timing.seconds)) == (5, 3)


def test_a_child_says_its_last_line_and_what_memory_it_took() -> None:
    ended = child([sys.executable, "-c", "print('noise'); print('{\"rows\": 3}')"], environ=os.environ, timeout_s=30)
    assert ended.output == {"rows": 3}
    assert ended.peak_mb > 1


def test_a_child_that_fails_is_told_with_what_it_wrote() -> None:
    with pytest.raises(ChildFailed, match="no such jar"):
        child([sys.executable, "-c", "raise SystemExit('no such jar')"], environ=os.environ, timeout_s=30)


def test_a_child_that_takes_too_long_is_ended() -> None:
    with pytest.raises(ChildFailed, match=r"did not end within 0 s"):
        child([sys.executable, "-c", "import threading; threading.Event().wait()"], environ=os.environ, timeout_s=0.05)
