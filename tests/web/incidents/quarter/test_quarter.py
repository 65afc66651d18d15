"""A simulated quarter: the machine ends with the incidents, messages, reruns, answers and scores that the book computes.

One seed and its first 20 days here, the whole of it in CI; `LAKEHUB_QUARTERS=50` tries as many, `LAKEHUB_QUARTER_DAYS` makes them
shorter or longer.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tests.web.incidents.quarter.compare_results import differences
from tests.web.incidents.quarter.model import ReferenceModel
from tests.web.incidents.quarter.read_results import keys_by_number, read
from tests.web.incidents.quarter.results import QuarterResults
from tests.web.incidents.quarter.scenario_generator import write
from tests.web.incidents.quarter.system_under_test import SystemUnderTest

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.timeout(900)]

QUARTERS = int(os.environ.get("LAKEHUB_QUARTERS", "1"))
DAYS = int(os.environ.get("LAKEHUB_QUARTER_DAYS", "20"))


FIRST = 2
"""A quarter in which each rule makes a difference."""


@pytest.mark.parametrize("seed", range(FIRST, FIRST + QUARTERS))
def test_a_quarter_ends_as_the_book_says(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    story = write(seed, DAYS)
    machine = SystemUnderTest(story, monkeypatch)
    machine.run()
    results = read(machine)
    ranks = {key: number for number, key in keys_by_number().items()}
    different = differences(results, ReferenceModel(story, machine.order, ranks).keep(), seed=seed)
    assert not different, different
    if seed == FIRST and DAYS >= 90:
        assert_much_happened(results)


def assert_much_happened(results: QuarterResults) -> None:
    """A quarter in which nothing happens proves nothing."""
    ends, fates = Counter(case.how for case in results.cases), Counter(letter.fate for letter in results.letters)
    occasions, verdicts = (
        Counter(letter.occasion for letter in results.letters),
        Counter(reply.verdict for reply in results.replies),
    )
    assert len(results.executions) > 2000
    assert {"auto", "manual_rerun", "false_positive", "accepted", "merged", "declared_fixed", "rejected"} <= set(ends)
    assert {"sent", "dropped"} <= set(fates)
    assert {"opened", "reopened", "resolved", "acknowledged", "reported"} <= set(occasions)
    assert {"pass", "warn", "fail", "unknown"} <= set(verdicts)
    assert any(letter.suppressed_since and letter.sent_at for letter in results.letters)
    assert any(letter.suppressed_since and letter.fate == "dropped" for letter in results.letters)
    whole = results.scores[0]
    assert min(whole.tp, whole.fp, whole.fn, whole.failed) > 0
