"""Outcomes, backoff, suggestions, the registry and failpoints."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import timedelta
from itertools import combinations_with_replacement
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehub.kernel.backoff import Backoff
from lakehub.kernel.failpoint import FAILPOINTS, is_armed, reach
from lakehub.kernel.outcome import Verdict, worst_verdict
from lakehub.kernel.registry import DuplicatePlugin, Registry, UnknownPlugin
from lakehub.kernel.suggest import did_you_mean


def test_fail_is_worse_than_unknown_is_worse_than_warn_is_worse_than_pass() -> None:
    order = [Verdict.FAIL, Verdict.UNKNOWN, Verdict.WARN, Verdict.PASS]
    for (place, verdict), (other_place, other) in combinations_with_replacement(enumerate(order), 2):
        assert worst_verdict([verdict, other]) is worst_verdict([other, verdict]) is order[min(place, other_place)]


def test_the_worst_of_nothing_is_unknown() -> None:
    assert worst_verdict([]) is Verdict.UNKNOWN


def test_waits_double_up_to_the_cap() -> None:
    backoff = Backoff(base=timedelta(minutes=5), cap=timedelta(hours=1))
    assert [backoff.delay(attempt, 0.0) // timedelta(minutes=1) for attempt in range(6)] == [5, 10, 20, 40, 60, 60]


@given(st.integers(1, 10**7), st.integers(0, 10**9), st.integers(0, 10**6), st.floats(0, 1, exclude_max=True))
def test_a_wait_stays_between_its_bounds_at_any_attempt(base: int, cap: int, attempt: int, jitter: float) -> None:
    backoff = Backoff(base=timedelta(seconds=base), cap=timedelta(seconds=cap), jitter_share=0.1)
    wait = backoff.delay(attempt, jitter)
    assert timedelta(seconds=min(base, cap)) <= wait <= timedelta(seconds=cap) * 1.1


def test_a_backoff_refuses_attempts_before_the_first_and_waits_of_nothing() -> None:
    with pytest.raises(ValueError, match="counted from 0, not -1"):
        Backoff(timedelta(seconds=1), timedelta(minutes=1)).delay(-1, 0.0)
    with pytest.raises(ValueError, match="longer than nothing, not 0:00:00"):
        Backoff(timedelta(), timedelta(minutes=1))


def test_a_suggestion_is_the_nearest_name_or_the_choices() -> None:
    assert did_you_mean("fligth", ["flight", "origin"]) == " Did you mean `flight`?"
    assert did_you_mean("xyz", ["flight", "origin"]) == " There are: `flight`, `origin`."
    assert did_you_mean("xyz", []) == ""
    assert did_you_mean("?", [f"name{number:02}" for number in range(20)]).endswith("`name11`, ...")


def test_a_registry_imports_what_is_asked_for_and_helps_with_a_typo() -> None:
    plugins: Registry[type] = Registry(
        "collection", {"ordered": "collections:OrderedDict", "broken": "no_such_module:X"}
    )
    assert plugins.get("ordered").__name__ == "OrderedDict"
    assert list(plugins) == ["ordered", "broken"]
    with pytest.raises(UnknownPlugin, match=r"no collection `orderd`\. Did you mean `ordered`"):
        plugins.get("orderd")


def test_installed_packages_add_plugins_by_entry_points_after_our_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _installed(tmp_path, "counter = collections:Counter")
    monkeypatch.syspath_prepend(str(tmp_path))
    plugins: Registry[type] = Registry(
        "collection", {"ordered": "collections:OrderedDict"}, group="lakehub.collections"
    )
    assert list(plugins) == ["ordered", "counter"]
    assert plugins.get("counter").__name__ == "Counter"
    assert list(Registry[type]("collection", {"ordered": "collections:OrderedDict"})) == ["ordered"]


def test_a_name_that_is_taken_is_refused_with_the_package_that_takes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _installed(tmp_path, "ordered = collections:Counter")
    monkeypatch.syspath_prepend(str(tmp_path))
    plugins: Registry[type] = Registry(
        "collection", {"ordered": "collections:OrderedDict"}, group="lakehub.collections"
    )
    with pytest.raises(DuplicatePlugin, match=r"^bag brings the collection `ordered` .* `collections:OrderedDict`"):
        plugins.get("ordered")


def _installed(folder: Path, entry: str) -> None:
    """A package `bag` with this entry point, as an installer leaves it."""
    about = folder / "bag-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: bag\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[lakehub.collections]\n{entry}\n")


def test_a_failpoint_that_is_not_armed_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAKEHUB_FAILPOINT", raising=False)
    for name in FAILPOINTS:
        reach(name)
        assert not is_armed(name)


def test_an_armed_failpoint_kills_the_process() -> None:
    code = (
        "from lakehub.kernel.failpoint import reach; reach('ingestion.before_write'); reach('ingestion.after_commit')"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "LAKEHUB_FAILPOINT": "ingestion.after_commit"}, check=False
    )
    assert ended.returncode == -signal.SIGKILL
