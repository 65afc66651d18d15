"""What every launcher promises: a report whatever happens, within the deadline, and no secret on the disk."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from resource import RLIMIT_FSIZE, prlimit
from threading import Event, Thread

import pytest

from ingestion.domain.accounting import RowCounts
from ingestion.launchers import LAUNCHERS, Launcher, LauncherConfig
from ingestion.launchers.spark_submit import build_code_zip
from ingestion.launchers.warm import WarmLauncher
from ingestion.spark.contract.progress import JobProgress
from ingestion.spark.contract.report import JobReport
from ingestion.spark.contract.secrets import offered_secrets, read_secrets
from ingestion.spark.session import is_jvm_alive, jvm_pid
from tests.polling import scaled, wait_until
from tests.spark.order_shop import Orders

pytestmark = pytest.mark.spark
LESS_THAN_A_PLAN, LESS_THAN_A_COMMIT = 2_000, 4_000
"""Bytes of what the table format writes of a commit of one row to a timeline, before the rows and after them."""


@pytest.fixture(scope="module", params=list(LAUNCHERS))
def launcher(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launcher]:
    made = LAUNCHERS.get(request.param)(LauncherConfig(tmp_path_factory.mktemp("jobs")))
    yield made
    made.close()


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    return Orders(tmp_path)


def test_a_job_is_run_and_reported(launcher: Launcher, orders: Orders) -> None:
    orders.fill(6)
    report = launcher.run(orders.spec("bootstrap", "b"), orders.secrets)
    assert (report.status, report.error) == ("succeeded", None)
    assert report.counts == RowCounts(read=6, applied=6)


def test_a_job_that_fails_is_a_report_too(launcher: Launcher, orders: Orders) -> None:
    orders.source = replace(orders.source, object="oders")
    report = launcher.run(orders.spec("bootstrap", "b"), orders.secrets)
    assert report.status == "failed"
    assert "Did you mean `orders`?" in (report.error or "")


def test_a_job_past_its_deadline_is_stopped_and_leaves_no_commit(launcher: Launcher, orders: Orders) -> None:
    orders.fill(6)
    began = time.monotonic()
    report = launcher.run(orders.spec("bootstrap", "b", deadline_s=0.2), orders.secrets)
    assert report.status == "failed"
    assert "deadline of 0.2 s" in (report.error or "")
    assert time.monotonic() - began < scaled(60)
    assert not orders.timeline.exists or not orders.timeline.commits()


def test_secrets_are_not_on_the_disk(orders: Orders, tmp_path: Path) -> None:
    launcher = LAUNCHERS.get("spark_submit")(LauncherConfig(tmp_path / "jobs"))
    secret = {"SHOP_URL": "sqlite:////nowhere/hunter2.db"}
    report = launcher.run(orders.spec("bootstrap", "b"), secret)
    assert "There is no SQLite database at /nowhere/hunter2.db" in (report.error or "")
    written = [path for path in (tmp_path / "jobs").rglob("spec.json") if "hunter2" in path.read_text()]
    assert written == []


def test_secrets_are_not_in_the_environment_of_a_submitted_job(
    orders: Orders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the JVM and of the Python that it starts, while they run; the secret is used all the same."""
    monkeypatch.setenv("LAKEHUB_ENCRYPTION_KEY", "the instance's own")
    orders.fill(6)
    launcher = LAUNCHERS.get("spark_submit")(LauncherConfig(tmp_path / "jobs"))
    reports: list[JobReport] = []
    job = Thread(target=lambda: reports.append(launcher.run(orders.spec("bootstrap", "b"), orders.secrets)))
    job.start()
    seen: dict[str, list[str]] = {}
    wait_until(lambda: seen.update(_environments(tmp_path / "jobs")) or {"java", "python"} <= set(seen))
    job.join()
    assert [report.status for report in reports] == ["succeeded"]
    (name, value) = next(iter(orders.secrets.items()))
    signs = (value, f"{name}=", "the instance's own")
    leaked = [text for texts in seen.values() for text in texts if any(sign in text for sign in signs)]
    assert leaked == []
    assert list((tmp_path / "jobs").rglob("secrets")) == []


def _environments(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Of the processes whose command names the folder, by the kind of the program."""
    for process in Path("/proc").iterdir():
        with suppress(OSError):
            words = (process / "cmdline").read_text().split("\0")
            kind = next((kind for kind in ("java", "python") if Path(words[0]).name.startswith(kind)), "")
            if kind and any(str(folder) in word for word in words):
                yield kind, (process / "environ").read_text().split("\0")


def test_secrets_are_read_once_and_too_large_ones_are_refused(tmp_path: Path) -> None:
    with offered_secrets(tmp_path / "secrets", {"SHOP_URL": "x"}) as pipe:
        assert pipe.stat().st_mode & 0o777 == 0o600
        assert read_secrets(pipe) == {"SHOP_URL": "x"}
    assert not pipe.exists()
    os.mkfifo(pipe)
    with pytest.raises(ValueError, match="Nobody offers"):
        read_secrets(pipe)
    with pytest.raises(ValueError, match="60000 are the most"), offered_secrets(pipe, {"SHOP_URL": "x" * 70_000}):
        pass


def test_the_code_is_packed_once_and_without_django(tmp_path: Path) -> None:
    import zipfile

    first, second = build_code_zip(tmp_path), build_code_zip(tmp_path)
    assert first == second
    names = zipfile.ZipFile(first).namelist()
    wanted = {"ingestion/spark/__main__.py", "lakehub/kernel/failpoint.py", "ingestion/sources/sql/source.py"}
    assert wanted | {"lakehub/logs/__init__.py"} <= set(names)
    assert not any("models" in name or "settings" in name for name in names)


def test_a_source_from_outside_the_tree_runs_from_the_zip(tmp_path: Path) -> None:
    """The zip comes first on the path and hides an installed Lakehub: what such a source shares with its storage is in it."""
    outside = Path(__file__).resolve().parents[1] / "toy_package"
    (tmp_path / "payments.ledger").write_text("id:long|payer:string\n1|ann\n2|bob\n")
    program = (
        "import lakehub, sys; assert '.zip' in lakehub.__file__, lakehub.__file__\n"
        "from ingestion.sources import SourceConfig; from lakehub_ledger.source import LedgerSource\n"
        f"source = LedgerSource(SourceConfig('ledger://{tmp_path}', 'payments'))\n"
        "print(sum(chunk.rows for chunk in source.snapshot().chunks), 'django' in sys.modules)"
    )
    path = f"{build_code_zip(tmp_path)}:{outside}"
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.stdout, ended.returncode) == ("2 False\n", 0), ended.stderr


def test_a_warm_session_is_renewed_when_it_is_worn(orders: Orders, tmp_path: Path) -> None:
    launcher = WarmLauncher(LauncherConfig(tmp_path / "jobs", max_jobs=1))
    orders.source = replace(orders.source, object="oders")
    assert launcher.run(orders.spec("bootstrap", "b"), orders.secrets).status == "failed"
    assert launcher._session is None


def test_a_warm_session_whose_jvm_died_between_two_jobs_is_opened_anew(orders: Orders, tmp_path: Path) -> None:
    orders.fill(3)
    launcher = WarmLauncher(LauncherConfig(tmp_path / "jobs"))
    assert launcher.run(orders.spec("bootstrap", "b"), orders.secrets).status == "succeeded"
    session = launcher._session
    assert session is not None
    os.kill(jvm_pid(session), signal.SIGKILL)
    wait_until(lambda: not is_jvm_alive(session))
    orders.change(1, 9.0, "2026-11-16 09:00:00")
    report = launcher.run(orders.spec("incremental", "i"), orders.secrets)
    assert (report.status, report.counts.applied) == ("succeeded", 1)
    launcher.close()


def test_the_next_write_goes_on_where_the_disk_was_full(orders: Orders, tmp_path: Path) -> None:
    """The table format would leave a file of its timeline cut off, or a heartbeat that goes on: nobody could write the table again."""
    orders.fill(3)
    launcher = WarmLauncher(LauncherConfig(tmp_path / "jobs"))
    assert launcher.run(orders.spec("bootstrap", "b"), orders.secrets).status == "succeeded"
    for number, size in enumerate((LESS_THAN_A_PLAN, LESS_THAN_A_COMMIT)):
        orders.change(1, 9.0 + number, f"2026-11-16 09:0{number}:00")
        with _files_of_at_most(size, launcher):
            failed = launcher.run(orders.spec("incremental", f"full-{number}"), orders.secrets)
        assert "File too large" in (failed.error or "")
        report = launcher.run(orders.spec("incremental", f"next-{number}", lock_wait_s=scaled(20.0)), orders.secrets)
        assert (report.status, report.error, report.counts.applied) == ("succeeded", None, 1)
    launcher.close()


@contextmanager
def _files_of_at_most(size: int, launcher: WarmLauncher) -> Iterator[None]:
    """What the launcher's JVM writes, which it may be without after that."""
    session = launcher._session
    assert session is not None
    process = jvm_pid(session)
    soft, hard = prlimit(process, RLIMIT_FSIZE)
    prlimit(process, RLIMIT_FSIZE, (size, hard))
    yield
    if launcher._session is session:
        prlimit(process, RLIMIT_FSIZE, (soft, hard))


def test_a_job_says_how_far_it_is_while_it_runs(launcher: Launcher, orders: Orders) -> None:
    orders.fill(6)
    spec = orders.spec("bootstrap", "told")
    answers: list[JobProgress] = []
    ended = Event()

    def ask() -> None:
        while not ended.wait(0.05):
            progress = launcher.progress(spec.run_id)
            if progress is not None:
                answers.append(progress)

    asking = Thread(target=ask)
    asking.start()
    try:
        report = launcher.run(spec, orders.secrets)
    finally:
        ended.set()
        asking.join()
    assert report.status == "succeeded"
    assert {progress.phase for progress in answers} <= {"start", *report.phases}
    assert (answers[-1].rows_read, answers[-1].rows_total) == (6, 6)
    assert launcher.progress("another run") is None
