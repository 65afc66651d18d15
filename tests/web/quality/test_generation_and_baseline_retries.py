"""Push and pull: what is behind is made, what fails waits its turn, what nobody told of is found."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from lakehub.catalog.datasets import changes, offboarding
from lakehub.catalog.models import Dataset
from lakehub.catalog.onboarding.onboard import onboard_dataset
from lakehub.catalog.onboarding.onboarding_request import OnboardingRequest
from quality.checks.duplicates import DuplicatesCheck
from quality.domain.generation.definitions import DatasetFacts, Definition
from quality.domain.language.measures import ROWS
from quality.domain.language.values import no_data
from quality.engines.scans.scan import ScanAnswers
from quality.generation import generate
from quality.models import BaselineAttempt, GenerationStatus, QualityTest
from quality.planning import baseline
from tests import factories
from tests.factories import HOUR, MINUTE, NOW

pytestmark = pytest.mark.django_db
SECOND = MINUTE / 60


def watched(name: str, **fields: object) -> Dataset:
    """A table that Lakehub only looks at."""
    made = factories.dataset(name, ingested=False, by_day=False, **fields)
    factories.feed(made)
    return made


def failing(generate: Callable[..., list[QualityTest]]) -> Callable[..., list[QualityTest]]:
    def fails_for_the_bad(dataset: Dataset, *among: object, **known: object) -> list[QualityTest]:
        if dataset.name.startswith("bad"):
            raise LookupError("no such check")
        return generate(dataset, *among, **known)

    return fails_for_the_bad


def made() -> set[str]:
    return set(GenerationStatus.objects.exclude(generated_at=None).values_list("dataset__name", flat=True))


def test_datasets_that_always_fail_starve_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate, "generate_tests", failing(generate.generate_tests))
    for number in range(6):
        watched(f"bad{number}", tier=0)
    watched("good", tier=5)
    for minute in range(2):
        generate.generate_outdated(now=NOW + minute * MINUTE, limit=6)
    assert made() == {"good"}


def test_what_failed_is_tried_again_later_and_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate, "generate_tests", failing(generate.generate_tests))
    bad = watched("bad")
    tried = [generate.generate_outdated(now=NOW + second * SECOND) for second in range(60)]
    assert (sum(tried), bad.coverage.attempts) == (3, 3), "after 10, 20 and 40 seconds"
    monkeypatch.undo()
    changes.update_dataset(bad, {"tier": 1}, actor="ann", now=NOW)
    generate.generate_outdated(now=NOW + MINUTE)
    assert made() == {"bad"}, "a change is tried at once"


def test_a_copy_whose_baseline_always_fails_starves_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def begin(dataset: Dataset, *there: object, **known: object) -> object:
        if dataset.name == "bad":
            raise OSError("the disk is gone")
        return NOW

    monkeypatch.setattr(baseline, "_monitored_from", begin)
    for name in ("bad", "good"):
        watched(name, tier=0 if name == "bad" else 5).copies.update(monitored_from=None)
    generate.generate_outdated(now=NOW)
    assert [baseline.start_missing_baselines(now=NOW + minute * MINUTE, limit=1) for minute in range(2)] == [0, 1]
    baseline.start_missing_baselines(now=NOW + SECOND)
    tried = BaselineAttempt.objects.get()
    assert (tried.problem, tried.attempts, tried.retry_at) == ("OSError: the disk is gone", 1, NOW + 10 * SECOND)
    monkeypatch.undo()
    assert baseline.start_missing_baselines(now=NOW + HOUR) == 1
    assert not BaselineAttempt.objects.exists()


def test_a_source_that_is_down_at_the_baseline_keeps_its_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "ops.db"
    with sqlite3.connect(file) as database:
        database.execute("CREATE TABLE legs (id INTEGER, flown TEXT)")
        database.executemany("INSERT INTO legs VALUES (?, ?)", [(day, f"2026-11-{day:02}") for day in (12, 13, 14)])
    factories.connection("ops_db", f"sqlite:///{file}")
    factories.data_center("dc1")
    request = OnboardingRequest(
        name="legs",
        team=factories.team("flight-ops").name,
        tier=1,
        connection="ops_db",
        table="legs",
        data_centers=("dc1",),
        kind="append-only",
        primary_key=("id",),
        partition_column="flown",
        grain="day",
        ingested=False,
    )
    copy = onboard_dataset(request, actor="ann", now=NOW).dataset.copies.get()
    generate.generate_outdated(now=NOW)
    file.rename(tmp_path / "away.db")
    assert baseline.start_missing_baselines(now=NOW) == 0
    copy.refresh_from_db()
    assert copy.monitored_from is None
    assert BaselineAttempt.objects.get().problem.startswith("CannotRead: ")

    (tmp_path / "away.db").rename(file)
    with monkeypatch.context() as patch:
        patch.setattr(baseline, "run_scan", lambda *_: ScanAnswers({ROWS: no_data("it took too long")}))
        assert baseline.start_missing_baselines(now=NOW + HOUR) == 0
    assert "it took too long" in BaselineAttempt.objects.get().problem
    assert baseline.start_missing_baselines(now=NOW + 2 * HOUR) == 1
    copy.refresh_from_db()
    assert copy.monitored_from is not None
    assert copy.monitored_from.date() == date(2026, 11, 12)


def test_a_change_that_told_nobody_is_found_by_the_pull() -> None:
    quiet = watched("quiet", tier=2)
    generate.generate_outdated(now=NOW)
    Dataset.objects.filter(pk=quiet.pk).update(tier=5)  # past every use case: no version, no wake-up
    generate.generate_outdated(now=NOW + HOUR)
    assert quiet.tests.get(key="duplicates").version.number == 1
    generate.generate_outdated(now=NOW + generate.REFRESH_INTERVAL)
    assert quiet.tests.get(key="duplicates").version.expression == "duplicates(this) < 5%"


def test_a_test_that_cannot_be_made_costs_no_other_and_leaves_what_was_there(monkeypatch: pytest.MonkeyPatch) -> None:
    table = watched("planes")
    generate.generate_tests(table, now=NOW)

    def mistyped(self: DuplicatesCheck, dataset: DatasetFacts) -> list[Definition]:
        return [Definition("duplicates", "t", "duplicates", "duplicates", "rows(ths) < 1", HOUR, HOUR, "x")]

    monkeypatch.setattr(DuplicatesCheck, "definitions", mistyped)
    assert [test.key for test in generate.generate_tests(table, now=NOW)] == ["freshness"]
    assert "Did you mean `this`?" in GenerationStatus.objects.get().problem
    assert table.tests.get(key="duplicates").retired_at is None


def test_a_dataset_without_its_upstream_is_compared_with_it_no_more() -> None:
    source, target = watched("source"), watched("target")
    factories.edge(source, target, one_to_one=True)
    generate.generate_outdated(now=NOW)
    assert target.tests.get(key="completeness").retired_at is None
    offboarding.offboard_dataset(source, actor="ann", now=NOW)
    generate.generate_outdated(now=NOW + MINUTE)
    assert target.tests.get(key="completeness").retired_at == NOW + MINUTE
