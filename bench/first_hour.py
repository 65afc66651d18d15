"""A file of 3,000,000 rows, from an empty instance to verdicts of all its days, by the browser alone: each phase, in seconds.

The rows are of 182 days that ended in 2001, with a timestamp; a Parquet file. The dataset is onboarded twice, watched where it lies
and brought into the lake. Everything is what `manage.py up` runs; a person clicks as fast as the pages come. 100,000 rows with --quick.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
from playwright.sync_api import Page, expect, sync_playwright

from bench.harness import ChildFailed, Report, run
from bench.schedule import instance
from bench.serving.server import free_address, wait_until_ready

ROWS, QUICK_ROWS, DAYS = 3_000_000, 100_000, 182
WATCHED, INGESTED = "readings_watched", "readings"
TESTS_OF_A_DAY = {
    WATCHED: ("duplicates", "null_keys", "volume"),
    INGESTED: ("completeness", "duplicates", "sample", "volume"),
}
PASSWORD = "of a bench, thrown away with it"  # noqa: S105
DEADLINE_S = 900
POLL_S = 0.2


def main() -> int:
    return run("first_hour", bench, __doc__)


def bench(report: Report) -> None:
    with instance("sqlite") as home, TemporaryDirectory(prefix="lakehub-bench-data-") as folder:
        data = Path(folder)  # an instance's own folder is no source
        _write_rows(data / "readings.parquet", QUICK_ROWS if report.quick else ROWS)
        _add_operator()
        with _everything_up(home, data) as url, _browser(url) as page:
            seconds = {"set up: team, data center, connection": _took(lambda: _set_up(page, home, data))}
            report.table(
                "Before the first dataset", ["phase", "s"], [[name, f"{s:.1f}"] for name, s in seconds.items()]
            )
            for name in (WATCHED, INGESTED) if not report.quick else (WATCHED,):
                _report_dataset(report, name, _onboarded(page, name, is_ingested=name == INGESTED))


def _report_dataset(report: Report, name: str, phases: dict[str, float]) -> None:
    rows = [[phase, f"{seconds:.1f}"] for phase, seconds in phases.items()]
    report.table(
        f"{name}: seconds from the click on its table",
        ["phase", "s"],
        [*rows, ["in all", f"{sum(phases.values()):.1f}"]],
    )
    for phase, seconds in phases.items():
        report.figure(f"{name}_{phase.replace(': ', '_').replace(' ', '_')}_s", seconds)


def _write_rows(file: Path, rows: int) -> None:
    """As many a minute, whole values and fractions, from 2000-12-31 on."""
    readings = duckdb.sql(
        """SELECT i AS id, TIMESTAMP '2000-12-31 00:00:00' + to_microseconds(i * $apart) AS taken_at,
            'station ' || i % 500 AS station, round(20 * sin(i / 1e4), 2) AS celsius FROM range($rows) AS rows(i)""",
        params={"rows": rows, "apart": DAYS * 86_400_000_000 // rows},
    )
    assert readings is not None
    readings.write_parquet(str(file))


def _add_operator() -> None:
    from lakehub.accounts.models import User

    User.objects.create_superuser("operator", password=PASSWORD)


@contextmanager
def _everything_up(home: Path, sources: Path) -> Iterator[str]:
    """`manage.py up`, all of it; its address."""
    address = free_address()
    bind = f"{address[0]}:{address[1]}"
    command = [sys.executable, "-m", "lakehub", "up", "--bind", bind]
    environ = {**os.environ, "LAKEHUB_SOURCE_ROOTS": str(sources)}
    with (home / "up.log").open("wb") as log:
        process = subprocess.Popen(command, env=environ, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        wait_until_ready(address, process, home / "up.log", timeout_s=120)
        yield f"http://{bind}"
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


@contextmanager
def _browser(url: str) -> Iterator[Page]:
    """The machine's own, signed in."""
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"  # Playwright keeps a loop in this thread, and nothing else runs in it
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        raise ChildFailed("There is no Chromium on this machine: apt-get install chromium")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage"])
        page = running.new_context(base_url=url, timezone_id="America/New_York").new_page()
        page.set_default_timeout(60_000)
        page.goto("/")
        page.get_by_label("User name").fill("operator")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("link", name="Datasets").first).to_be_visible()
        yield page
        running.close()


def _set_up(page: Page, home: Path, data: Path) -> None:
    page.goto("/new-team")
    page.get_by_label("Name").fill("weather")
    page.get_by_role("button", name="Add the team").click()
    expect(page.get_by_role("status").first).to_be_visible()
    page.goto("/new-data-center")
    page.get_by_label("Name").fill("dc1")
    page.get_by_label("Root of its lake").fill(f"file://{home}/lake")
    page.get_by_role("button", name="Add the data center").click()
    expect(page.get_by_role("status").first).to_be_visible()
    page.goto("/new-connection")
    page.get_by_label("Name").fill("sensors")
    page.get_by_label("Kind").select_option("files")
    page.get_by_label("URL").fill(f"file://{data}")
    page.get_by_role("button", name="Test connection").click()
    expect(page.locator("#tested")).to_contain_text("It lists 1 table")
    page.get_by_role("button", name="Save connection").click()
    expect(page.get_by_role("status").first).to_contain_text("was reached")


def _onboarded(page: Page, name: str, *, is_ingested: bool) -> dict[str, float]:
    phases = {"wizard filled from the data": _took(lambda: _open_wizard(page))}
    _fill(page, name, is_ingested=is_ingested)
    phases["checked and onboarded"] = _took(lambda: _submit(page, name))
    if is_ingested:
        phases |= _load_phases(name)
    phases["verdicts of all days"] = _took(lambda: _wait_for_verdicts(name))
    page.goto(f"/datasets/{name}")
    expect(page.get_by_role("main")).to_contain_text("Pass")
    return phases


def _open_wizard(page: Page) -> None:
    page.goto("/onboarding?connection=sensors")
    page.get_by_role("link", name="*.parquet").click()
    expect(page.get_by_label("Partition column")).to_have_value("taken_at")
    expect(page.get_by_label("Grain")).to_have_value("day")


def _fill(page: Page, name: str, *, is_ingested: bool) -> None:
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_role("radio", name="Tier 2").check()
    page.get_by_label("Bring its rows into the lake").set_checked(is_ingested)
    page.get_by_label("dc1").check()
    page.get_by_label("Primary key").fill("id")
    if is_ingested:
        page.get_by_label("Reference key").fill("taken_at")


def _submit(page: Page, name: str) -> None:
    page.get_by_role("button", name="Check and onboard").click()
    expect(page.get_by_role("heading", name=f"{name} is onboarded")).to_be_visible(timeout=120_000)


def _load_phases(name: str) -> dict[str, float]:
    """How long the bootstrap took, by its phases as the pages show them."""
    from ingestion.models import JobRun, JobState

    phases, seen, since = dict[str, float](), "waits", time.perf_counter()
    run = JobRun.objects.filter(copy__dataset__name=name)
    for _ in _until_deadline(f"{name} is not in the lake"):
        if (asked := run.values_list("state", "progress").first()) is None:
            continue
        state, progress = asked
        if state == JobState.FAILED:
            raise ChildFailed(f"The bootstrap of {name} failed: {run.get().error}")
        phase = "" if state == JobState.SUCCEEDED else str(progress.get("phase", "waits"))
        if phase != seen:
            now = time.perf_counter()
            phases[f"load: {seen}"] = phases.get(f"load: {seen}", 0) + now - since
            seen, since = phase, now
        if state == JobState.SUCCEEDED:
            break
    return phases


def _wait_for_verdicts(name: str) -> None:
    """Until each test of a day has one of each day. Raises ChildFailed where one is not PASS."""
    from quality.models import Unit

    tests = TESTS_OF_A_DAY[name]
    units = Unit.objects.filter(test__dataset__name=name, test__key__in=tests).exclude(latest_outcome="")
    for _ in _until_deadline(f"{name} has no verdicts of all days"):
        if units.count() >= DAYS * len(tests):
            break
    outcomes = set(units.values_list("latest_outcome", flat=True))
    if outcomes != {"pass"}:
        raise ChildFailed(f"Days of {name} that nothing is wrong with ended as {sorted(outcomes)}")


def _until_deadline(problem: str) -> Iterator[None]:
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        yield
        time.sleep(POLL_S)
    raise ChildFailed(f"{problem} after {DEADLINE_S} s, {datetime.now(UTC):%H:%M} UTC.")


def _took(work: object) -> float:
    begun = time.perf_counter()
    assert callable(work)
    work()
    return time.perf_counter() - begun


if __name__ == "__main__":
    sys.exit(main())
