"""What every launcher promises: a report whatever happens, within the deadline, and no secret on the disk."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from resource import RLIMIT_FSIZE, prlimit
from threading import Event, Thread, Timer
from typing import Any

import pytest

from ingestion.domain.accounting import RowCounts
from ingestion.launchers import LAUNCHERS, Launcher, LauncherConfig, warm
from ingestion.launchers.spark_submit import build_code_zip
from ingestion.launchers.warm import WarmLauncher
from ingestion.spark.contract.progress import JobProgress
from ingestion.spark.contract.report import JobReport
from ingestion.spark.contract.secrets import offered_secrets, read_secrets
from ingestion.spark.contract.spec import JobSpec
from ingestion.spark.execute import execute
from ingestion.spark.session import is_jvm_alive, jvm_pid, lost_tasks
from tests.polling import scaled, wait_until
from tests.spark.order_shop import SECRET, Orders, global_index_of
from tests.spark.pipeline_lake import InputTable, PipelineLake, pipeline_of
from tests.tcp_forwarder import TcpForwarder

pytestmark = pytest.mark.spark
FLIGHTS = InputTable({"id": "long", "delay": "int"}, ("id",))
ENDLESS = pipeline_of(
    "SELECT f.id, count(*) AS n FROM flights f CROSS JOIN flights g CROSS JOIN flights h CROSS JOIN flights i CROSS JOIN flights j "
    "WHERE f.delay + g.delay + h.delay + i.delay + j.delay > 0 GROUP BY f.id",
    {"id": "long", "n": "long"},
    ("id",),
    "flights",
)
"""Of 300 rows it makes, before it groups, more than 2,000,000,000,000."""
LESS_THAN_A_PLAN, LESS_THAN_A_COMMIT = 2_000, 4_000
"""Bytes of what the table format writes of a commit of one row to a timeline, before the rows and after them."""


@dataclass
class CountedLease:
    """Free from the second try on; `on_grant` runs while it is held."""

    on_grant: Callable[[], None] = lambda: None
    tries: int = 0
    holders: int = 0
    most_holders: int = 0

    def try_acquire(self) -> bool:
        self.tries += 1
        if self.tries == 1:
            return False
        self.holders += 1
        self.most_holders = max(self.holders, self.most_holders)
        self.on_grant()
        return True

    def release(self) -> None:
        self.holders = 0


@dataclass
class SlowGuidance:
    """Whoever asks may read on from the second time on."""

    paused: bool = False
    asked: list[int] = field(default_factory=list)

    def is_paused(self) -> bool:
        return self.paused

    def may_read_on(self, rows: int) -> bool:
        self.asked.append(rows)
        return self.asked.count(rows) > 1

    def index_requests_per_s(self) -> None:
        """It asks no index."""


@dataclass
class JobRun:
    """A job that a launcher has run, and what was seen of it meanwhile. It is run once for all tests that look at it: a JVM costs most."""

    launcher: Launcher
    folder: Path
    orders: Orders
    spec: JobSpec
    report: JobReport | None = None
    lease: CountedLease = field(default_factory=CountedLease)
    answers: list[JobProgress] = field(default_factory=list)
    environments: dict[str, list[str]] = field(default_factory=dict)

    def run(self) -> None:
        ended = Event()
        asking = Thread(target=self._look, args=(ended,))
        asking.start()
        try:
            self.report = self.launcher.run(self.spec, self.orders.secrets, self.lease)
        finally:
            ended.set()
            asking.join()

    def _look(self, ended: Event) -> None:
        while not ended.wait(0.05):
            progress = self.launcher.progress(self.spec.run_id)
            if progress is not None:
                self.answers.append(progress)
            if not {"java", "python"} <= set(self.environments):
                self.environments.update(_environments(self.folder))


@pytest.fixture(scope="module")
def run_with(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], JobRun]]:
    """By the name of a launcher."""
    runs: dict[str, JobRun] = {}

    def run_once(name: str) -> JobRun:
        if name not in runs:
            folder = tmp_path_factory.mktemp(name)
            orders = Orders(folder / "shop")
            orders.fill(6)
            launcher = LAUNCHERS.get(name)(LauncherConfig(folder / "jobs"))
            runs[name] = JobRun(launcher, folder / "jobs", orders, orders.spec("bootstrap", "b"))
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("LAKEHUB_ENCRYPTION_KEY", "the instance's own")
                runs[name].run()
        return runs[name]

    yield run_once
    for each in runs.values():
        each.launcher.close()


@pytest.fixture(params=list(LAUNCHERS))
def job_run(request: pytest.FixtureRequest, run_with: Callable[[str], JobRun]) -> JobRun:
    return run_with(request.param)


@pytest.fixture
def launcher(job_run: JobRun) -> Launcher:
    return job_run.launcher


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    return Orders(tmp_path)


@pytest.fixture
def submitted(run_with: Callable[[str], JobRun]) -> JobRun:
    return run_with("spark_submit")


def test_a_job_is_run_and_reported(job_run: JobRun) -> None:
    report = job_run.report
    assert report is not None
    assert (report.status, report.error) == ("succeeded", None)
    assert report.counts == RowCounts(read=6, applied=6)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells it")
def test_its_core_seconds_are_those_of_its_jvm_too(job_run: JobRun) -> None:
    """Of which a first commit of Hudi takes some seconds; Python alone takes less than one."""
    assert job_run.report is not None
    assert job_run.report.core_s is not None
    assert 1 < job_run.report.core_s <= job_run.report.phases["total"] * (os.cpu_count() or 1) + 0.1


def test_a_job_waits_for_the_lease_and_gives_it_back(job_run: JobRun) -> None:
    assert job_run.report is not None
    assert job_run.report.status == "succeeded"
    assert (job_run.lease.tries, job_run.lease.most_holders, job_run.lease.holders) == (2, 1, 0)


def test_a_load_that_is_paused_stops_after_its_commit(launcher: Launcher, orders: Orders) -> None:
    orders.fill(5)
    orders.source = replace(orders.source, commit_rows=2)
    spec = orders.spec("bootstrap", "p")
    report = launcher.run(spec, orders.secrets, None, SlowGuidance(paused=True))
    assert (report.status, report.counts.read, report.has_more) == ("paused", 2, True)
    guidance = SlowGuidance()
    orders.source = replace(orders.source, is_paid_for=True)
    report = launcher.run(orders.spec("bootstrap", "p"), orders.secrets, None, guidance)
    assert (report.status, report.counts.read) == ("succeeded", 5)
    # Each sum twice, as the first answer is no; the two commits of this job are one sum.
    assert [rows for rows in guidance.asked if guidance.asked.count(rows) >= 2] == guidance.asked
    assert sorted(set(guidance.asked)) == [2, 3]


def test_the_lease_of_a_job_that_dies_while_it_writes_is_given_back(
    run_with: Callable[[str], JobRun], orders: Orders, tmp_path: Path
) -> None:
    """The process of the job is killed as soon as it may write; the next attempt goes on."""
    orders.fill(3)
    launcher = LAUNCHERS.get("spark_submit")(LauncherConfig(tmp_path / "jobs"))
    lease = CountedLease(lambda: _kill_processes(tmp_path / "jobs"))
    report = launcher.run(orders.spec("bootstrap", "b"), orders.secrets, lease)
    assert report.status == "failed"
    # Whoever sees it first: the launcher, or the Python of the job before it is ended too.
    assert re.search("The job's (process ended with code -9|JVM ended while the job ran)", report.error or "")
    assert (lease.most_holders, lease.holders) == (1, 0)
    warm_launcher = run_with("warm").launcher
    assert (
        warm_launcher.run(orders.spec("bootstrap", "b", lock_wait_s=scaled(20.0)), orders.secrets).status == "succeeded"
    )


def _kill_processes(folder: Path) -> None:
    """Of the job whose command names the folder."""
    for process in Path("/proc").iterdir():
        with suppress(OSError):
            words = (process / "cmdline").read_text().split("\0")
            if Path(words[0]).name.startswith("java") and any(str(folder) in word for word in words):
                os.kill(int(process.name), signal.SIGKILL)


def test_a_job_says_how_far_it_is_while_it_runs(job_run: JobRun) -> None:
    assert job_run.report is not None
    assert {progress.phase for progress in job_run.answers} <= {"start", *job_run.report.phases}
    assert (job_run.answers[-1].rows_read, job_run.answers[-1].rows_total) == (6, 6)
    assert job_run.launcher.progress("another run") is None


def test_a_job_that_fails_is_a_report_too(launcher: Launcher, orders: Orders) -> None:
    orders.source = replace(orders.source, object="oders")
    report = launcher.run(orders.spec("bootstrap", "b"), orders.secrets)
    assert (report.status, report.timed_out) == ("failed", False)
    assert "Did you mean `orders`?" in (report.error or "")


def test_a_job_past_its_deadline_is_stopped_and_leaves_no_commit(launcher: Launcher, orders: Orders) -> None:
    orders.fill(6)
    began = time.monotonic()
    report = launcher.run(orders.spec("bootstrap", "b", deadline_s=0.001), orders.secrets)
    assert (report.status, report.timed_out) == ("failed", True)
    assert "deadline of 0.001 s" in (report.error or "")
    assert time.monotonic() - began < scaled(60)
    assert not orders.timeline.exists or not orders.timeline.commits()


def test_secrets_are_not_on_the_disk(submitted: JobRun) -> None:
    assert submitted.report is not None
    assert submitted.report.status == "succeeded"  # it was used
    (secret,) = submitted.orders.secrets.values()
    files = [path for path in submitted.folder.rglob("*") if path.is_file()]
    assert {"spec.json", "report.json", "log.txt"} <= {path.name for path in files}
    assert [path for path in files if secret.encode() in path.read_bytes()] == []


def test_secrets_are_not_in_the_environment_of_a_submitted_job(submitted: JobRun) -> None:
    """Of the JVM and of the Python that it starts, while they run; the secret is used all the same."""
    assert submitted.report is not None
    assert submitted.report.status == "succeeded"
    assert {"java", "python"} <= set(submitted.environments)
    (name, value) = next(iter(submitted.orders.secrets.items()))
    signs = (value, f"{name}=", "the instance's own")
    leaked = [
        text for texts in submitted.environments.values() for text in texts if any(sign in text for sign in signs)
    ]
    assert leaked == []
    assert list(submitted.folder.rglob("secrets")) == []


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
        "print(sum(chunk.rows for chunk in source.snapshot().batches), 'django' in sys.modules)"
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


def test_every_plug_in_of_a_job_runs_from_the_zip(tmp_path: Path) -> None:
    """With all that it imports, the job that merges changes, and who judges audits."""
    program = (
        "import lakehub, sys; assert '.zip' in lakehub.__file__, lakehub.__file__\n"
        "from ingestion.changelog import CHANGELOGS; from ingestion.sources import SOURCES; from ingestion.spark.indexes import INDEXES\n"
        "from ingestion.spark import __main__; from ingestion.spark.jobs import incremental, replay; from quality.audits import judging\n"
        "print(all(registry.get(name) for registry in (SOURCES, CHANGELOGS, INDEXES) for name in registry), 'django' in sys.modules)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(build_code_zip(tmp_path))},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.stdout, ended.returncode) == ("True False\n", 0), ended.stderr


def test_a_global_index_is_made_and_asked_in_a_process_of_its_own(
    run_with: Callable[[str], JobRun], tmp_path: Path
) -> None:
    """It has the code from the zip, and knows the jars of HBase's client by what the launcher hands it."""
    launcher = run_with("spark_submit").launcher
    orders = Orders(tmp_path, index="hbase")
    orders.table = replace(orders.table, record_key=("id",), global_index=replace(global_index_of(tmp_path), thrift=""))
    orders.fill(3)
    loaded = launcher.run(orders.spec("bootstrap", "b"), orders.secrets)
    assert loaded.error is None
    assert loaded.index_use is not None
    assert loaded.index_use.entries == 3
    orders.change(1, 9.0, "2026-11-16 09:00:00")
    changed = launcher.run(orders.spec("incremental", "i"), orders.secrets)
    assert (changed.error, changed.written.inserts, changed.written.updates) == (None, 0, 1)


def test_a_warm_session_whose_jvm_died_between_two_jobs_is_opened_anew(run_with: Callable[[str], JobRun]) -> None:
    run = run_with("warm")
    launcher, orders = run.launcher, run.orders
    assert isinstance(launcher, WarmLauncher)
    session = launcher._open()
    os.kill(jvm_pid(session), signal.SIGKILL)
    wait_until(lambda: not is_jvm_alive(session))
    orders.change(1, 9.0, "2026-11-16 09:00:00")
    report = launcher.run(orders.spec("incremental", "i"), orders.secrets)
    assert (report.status, report.counts.applied) == ("succeeded", 1)


def test_a_job_whose_jvm_is_killed_while_it_runs_says_so(run_with: Callable[[str], JobRun], orders: Orders) -> None:
    """Rather than that Java has no `java`, which is what py4j makes of it."""
    orders.fill(3)
    launcher = _warm(run_with)
    session = launcher._open()
    lease = CountedLease(lambda: os.kill(jvm_pid(session), signal.SIGKILL))
    report = launcher.run(orders.spec("bootstrap", "k"), orders.secrets, lease)
    assert report.status == "failed"
    assert (report.error or "").startswith("The job's JVM ended while the job ran: it was killed, or")
    assert lease.holders == 0


def test_a_database_that_is_silent_is_left_at_the_deadline(run_with: Callable[[str], JobRun], orders: Orders) -> None:
    """It lets everybody in and says nothing: the process that launched the job has others to see to."""
    with TcpForwarder() as silent:
        secrets = {SECRET: f"mysql+pymysql://ops:x@127.0.0.1:{silent.port}/ops?connect_timeout=60"}
        began = time.monotonic()
        report = run_with("warm").launcher.run(orders.spec("bootstrap", "b", deadline_s=1.0), secrets)
        took = time.monotonic() - began
    assert (report.status, report.timed_out, took < scaled(25)) == ("failed", True, True)
    assert (report.error or "").startswith("The job took longer than its deadline of 1 s")


def test_the_deadline_counts_from_the_jobs_own_beginning(
    run_with: Callable[[str], JobRun], orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine that is later than the launcher's: a job that was ended before its own deadline would blame the database."""
    launcher = _warm(run_with)

    def begins_late(*args: Any, **kwargs: Any) -> JobReport:
        late = time.monotonic() + 2.0
        wait_until(lambda: time.monotonic() >= late)
        return execute(*args, **kwargs)

    monkeypatch.setattr(warm, "execute", begins_late)
    with TcpForwarder() as silent:
        secrets = {SECRET: f"mysql+pymysql://ops:x@127.0.0.1:{silent.port}/ops?connect_timeout=60"}
        report = launcher.run(orders.spec("bootstrap", "b", deadline_s=3.0), secrets)
    assert report.timed_out
    assert (report.error or "").startswith("The job took longer than its deadline of 3 s")


def test_a_jvm_that_hangs_is_killed_after_the_deadline(
    run_with: Callable[[str], JobRun], orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers nothing, so whoever asks it to stop waits with it."""
    monkeypatch.setattr(warm, "STOP_TIMEOUT_S", 2)
    orders.fill(3)
    launcher = _warm(run_with)
    process = jvm_pid(launcher._open())

    def stop_jvm() -> None:
        wait_until(lambda: launcher._job is not None)
        os.kill(process, signal.SIGSTOP)

    hang = Thread(target=stop_jvm)
    hang.start()
    with _killed_in_the_end(lambda: process):
        began = time.monotonic()
        report = launcher.run(orders.spec("bootstrap", "b", deadline_s=1.0), orders.secrets)
        took = time.monotonic() - began
    hang.join()
    assert (report.status, report.timed_out, took < scaled(25)) == ("failed", True, True)
    assert "deadline of 1 s" in (report.error or "")
    assert not _is_running(process)
    assert launcher.run(orders.spec("bootstrap", "c", lock_wait_s=scaled(20.0)), orders.secrets).status == "succeeded"


def test_a_select_that_never_ends_is_stopped_and_leaves_its_cores_to_the_next_job(
    run_with: Callable[[str], JobRun], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tasks look at no interrupt within one row, so they would go on after Spark has cancelled their job."""
    monkeypatch.setattr(warm, "STOP_TIMEOUT_S", 3)
    launcher = _warm(run_with)
    lake = PipelineLake(launcher._open(), tmp_path, {"flights": FLIGHTS}, {"wide": ENDLESS})
    lake.put("flights", [(n, n) for n in range(300)])
    report = launcher.run(lake.spec("bootstrap", "b", deadline_s=scaled(5)), {})
    assert (report.status, report.timed_out, report.phases["compute"] > 0) == ("failed", True, True)
    assert (report.error or "").startswith(f"The job took longer than its deadline of {scaled(5):g} s")
    assert not (tmp_path / "lake" / "wide").exists()
    assert lost_tasks(launcher._open()) == 0
    lake.pipelines = {"wide": replace(ENDLESS, transform="SELECT id, delay AS n FROM flights")}
    report = launcher.run(lake.spec("bootstrap", "c", deadline_s=scaled(60)), {})
    assert (report.error, report.counts.applied) == (None, 300)


def test_a_jvm_that_hangs_between_two_jobs_costs_one_job(
    run_with: Callable[[str], JobRun], orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm, "STOP_TIMEOUT_S", 1)
    launcher = _warm(run_with)
    process = jvm_pid(launcher._open())
    os.kill(process, signal.SIGSTOP)
    with _killed_in_the_end(lambda: process):
        began = time.monotonic()
        report = launcher.run(orders.spec("bootstrap", "b", deadline_s=1.0), orders.secrets)
        took = time.monotonic() - began
    assert (report.status, took < scaled(25)) == ("failed", True)
    assert "deadline of 1 s" in (report.error or "")
    assert launcher._session is None


def _warm(run_with: Callable[[str], JobRun]) -> WarmLauncher:
    launcher = run_with("warm").launcher
    assert isinstance(launcher, WarmLauncher)
    return launcher


@contextmanager
def _killed_in_the_end(process: Callable[[], int]) -> Iterator[None]:
    """So that a test of what hangs fails rather than hangs."""
    last_resort = Timer(scaled(30), lambda: os.kill(process(), signal.SIGKILL))
    last_resort.start()
    yield
    last_resort.cancel()


def _is_running(process: int) -> bool:
    """What nobody has collected yet is not."""
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_the_next_write_goes_on_where_the_disk_was_full(run_with: Callable[[str], JobRun], orders: Orders) -> None:
    """The table format would leave a file of its timeline cut off, or a heartbeat that goes on: nobody could write the table again."""
    orders.fill(3)
    launcher = _warm(run_with)
    assert launcher.run(orders.spec("bootstrap", "b"), orders.secrets).status == "succeeded"
    for number, size in enumerate((LESS_THAN_A_PLAN, LESS_THAN_A_COMMIT)):
        orders.change(1, 9.0 + number, f"2026-11-16 09:0{number}:00")
        with _files_of_at_most(size, launcher):
            failed = launcher.run(orders.spec("incremental", f"full-{number}"), orders.secrets)
        assert "File too large" in (failed.error or "")
        report = launcher.run(orders.spec("incremental", f"next-{number}", lock_wait_s=scaled(20.0)), orders.secrets)
        assert (report.status, report.error, report.counts.applied) == ("succeeded", None, 1)


@contextmanager
def _files_of_at_most(size: int, launcher: WarmLauncher) -> Iterator[None]:
    """What the launcher's JVM writes, which it may be without after that."""
    session = launcher._open()
    process = jvm_pid(session)
    soft, hard = prlimit(process, RLIMIT_FSIZE)
    prlimit(process, RLIMIT_FSIZE, (size, hard))
    yield
    if launcher._session is session:
        prlimit(process, RLIMIT_FSIZE, (soft, hard))


def test_a_warm_session_is_renewed_when_it_is_worn(
    run_with: Callable[[str], JobRun], orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = _warm(run_with)
    monkeypatch.setattr(launcher, "_config", replace(launcher._config, max_jobs=launcher._jobs + 1))
    orders.source = replace(orders.source, object="oders")
    assert launcher.run(orders.spec("bootstrap", "b"), orders.secrets).status == "failed"
    assert launcher._session is None
