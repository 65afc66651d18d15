"""Each job as a process of its own, handed to a cluster (or this machine) by spark-submit: the code as a zip, the secrets through a pipe, the output in a log file."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import quote

import ingestion
import lakehub
from ingestion.launchers import LauncherConfig
from ingestion.spark.contract.guidance import Guidance, GuidanceAnswers, NoGuidance
from ingestion.spark.contract.progress import FILE_NAME, JobProgress
from ingestion.spark.contract.report import FAILED, JobReport
from ingestion.spark.contract.secrets import offered_secrets
from ingestion.spark.contract.spec import JobSpec
from ingestion.spark.contract.write_lease import POLL_INTERVAL_S, LeaseAnswers, NoLease, WriteLease
from ingestion.spark.environment import jvm_environment
from ingestion.spark.global_index.hbase_client.jvm import jars_for_driver
from ingestion.spark.session import hudi_jar, java_home, scratch_settings, sized_settings, submit_settings
from lakehub.processes.niceness import come_last_in_session
from lakehub.scratch import add_owner, temporary_folder

EXIT_TIMEOUT_S = 30
"""The job knows its deadline itself; a process that goes on after this much more is killed with all that it started."""
_ZIPPED_PATHS = (
    "lakehub/__init__.py",
    "lakehub/environment.py",
    "lakehub/logs",
    "lakehub/scratch.py",
    "lakehub/kernel",
    "lakehub/source_databases",
    "lakehub/source_topics",
    "lakehub/user_sql",
    # What a source from outside the tree shares with its storage.
    "lakehub/catalog/__init__.py",
    "lakehub/catalog/metadata",
    "lakehub/catalog/storages",
    "ingestion/__init__.py",
    "ingestion/capture",
    "ingestion/changelog",
    "ingestion/domain",
    "ingestion/heatpipe",
    "ingestion/index",
    "ingestion/raw_chunks",
    "ingestion/sources",
    "ingestion/spark",
    # Audits of pipelines are tests.
    "quality/__init__.py",
    "quality/audits",
    "quality/domain",
    "quality/engines",
)
_LOG_TAIL_LINES = 15


@dataclass(frozen=True)
class Answers:
    """What a job's process asks for while it runs."""

    lease: LeaseAnswers
    guidance: GuidanceAnswers

    def answer(self) -> None:
        self.lease.answer()
        self.guidance.answer()

    def close(self) -> None:
        self.lease.close()


@dataclass(frozen=True)
class ProcessEnd:
    """How a job's process ended that left no report."""

    words: str
    timed_out: bool = False


class SparkSubmitLauncher:
    def __init__(self, config: LauncherConfig) -> None:
        self._config = config

    def run(
        self,
        spec: JobSpec,
        secrets: Mapping[str, str],
        lease: WriteLease | None = None,
        guidance: Guidance | None = None,
    ) -> JobReport:
        folder = self._folder(spec.run_id)
        folder.mkdir(parents=True, exist_ok=True)
        spec_path, report_path, log_path = (folder / name for name in ("spec.json", "report.json", "log.txt"))
        report_path.unlink(missing_ok=True)
        (folder / FILE_NAME).unlink(missing_ok=True)
        spec_path.write_text(spec.to_json())
        answers = LeaseAnswers(folder / "lease", lease or NoLease())
        guided = GuidanceAnswers(folder / "lease", guidance or NoGuidance())
        try:
            ended = self._submit(spec, spec_path, report_path, log_path, secrets, Answers(answers, guided))
        finally:
            if spec.replay is not None or spec.delete is not None:
                # It holds keys and values of rows; the folder of a job that failed stays for days.
                spec_path.unlink(missing_ok=True)
        if report_path.is_file():
            return JobReport.from_file(report_path)
        error = f"{ended.words}. {_words_of_log(spec, log_path)}"
        return JobReport(run_id=spec.run_id, status=FAILED, error=error, timed_out=ended.timed_out)

    def progress(self, run_id: str) -> JobProgress | None:
        return JobProgress.from_file(self._folder(run_id) / FILE_NAME)

    def close(self) -> None:
        """Nothing is kept."""

    def _folder(self, run_id: str) -> Path:
        return self._config.folder / quote(run_id, safe="")

    def _submit(
        self,
        spec: JobSpec,
        spec_path: Path,
        report_path: Path,
        log_path: Path,
        secrets: Mapping[str, str],
        answers: Answers,
    ) -> ProcessEnd:
        with (
            log_path.open("ab") as log,
            temporary_folder("jvm") as scratch,
            offered_secrets(spec_path.with_name("secrets"), secrets) as pipe,
        ):
            files = (_main_file(), spec_path, report_path, pipe, spec_path.with_name("lease"))
            command = [*self._command(spec, scratch), *map(str, files)]
            return self._run_to_end(command, spec, report_path, log, scratch, answers)

    def _run_to_end(
        self,
        command: list[str],
        spec: JobSpec,
        report_path: Path,
        log: IO[bytes],
        scratch: Path,
        answers: Answers,
    ) -> ProcessEnd:
        process = subprocess.Popen(
            command,
            env=self._environment(spec),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        add_owner(scratch, process.pid)
        come_last_in_session(process.pid)
        try:
            code = _wait_and_answer(process, spec.deadline_s + EXIT_TIMEOUT_S, report_path, answers)
            return ProcessEnd(f"The job's process ended with code {code} and no report")
        except subprocess.TimeoutExpired:
            return ProcessEnd(f"The job was stopped: it took longer than its deadline of {spec.deadline_s:g} s", True)
        finally:
            _kill_process_group(process)
            answers.close()

    def _command(self, spec: JobSpec, scratch: Path) -> list[str]:
        config = self._config
        settings = submit_settings(config.master, config.memory, config.jar or hudi_jar(os.environ))
        if spec.pipeline is not None and spec.pipeline.resources is not None:
            settings |= sized_settings(spec.pipeline.resources, config.master)
        settings |= scratch_settings(scratch)
        options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
        return [_spark_submit(), *options, "--py-files", str(build_code_zip(config.folder))]

    def _environment(self, spec: JobSpec) -> dict[str, str]:
        """Of our own environment only what a program needs to start: what else is in it may be secret. Raises SecretForSpark."""
        home = self._config.java_home or java_home(os.environ)
        return {
            **jvm_environment(os.environ),
            "JAVA_HOME": home,
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            **(jars_for_driver(os.environ) if spec.table.global_index else {}),
            **({"SPARK_LOCAL_IP": "127.0.0.1"} if self._config.master.startswith("local") else {}),
        }


def build_code_zip(folder: Path) -> Path:
    """The code that a job needs, as a zip that is named by its content and made once."""
    files = dict(_zipped_files())
    digest = hashlib.sha256(b"".join(name.encode() + content for name, content in files.items())).hexdigest()[:16]
    target = folder / f"lakehub-{digest}.zip"
    if target.is_file():
        os.utime(target)  # what is used is not old
    else:
        folder.mkdir(parents=True, exist_ok=True)
        temporary = target.with_suffix(f".{os.getpid()}")
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        temporary.replace(target)
    return target


def _zipped_files() -> Iterator[tuple[str, bytes]]:
    root = _root(lakehub.__path__[0])
    assert root == _root(ingestion.__path__[0])
    for part in _ZIPPED_PATHS:
        path = root / part
        for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
            yield file.relative_to(root).as_posix(), file.read_bytes()


def _root(package: str) -> Path:
    return Path(package).resolve().parent


def _main_file() -> Path:
    return _root(ingestion.__path__[0]) / "ingestion" / "spark" / "__main__.py"


def _spark_submit() -> str:
    import pyspark

    return str(Path(pyspark.__path__[0]) / "bin" / "spark-submit")


def _wait_and_answer(process: subprocess.Popen[bytes], timeout_s: float, report_path: Path, answers: Answers) -> int:
    """Its exit code; meanwhile the job is answered whether it may write. Raises TimeoutExpired, also where the process stays though it has reported: a thread of foreign
    code may keep a JVM."""
    ends_at, has_reported = time.monotonic() + timeout_s, False
    while time.monotonic() < ends_at:
        answers.answer()
        with suppress(subprocess.TimeoutExpired):
            return process.wait(POLL_INTERVAL_S)
        if not has_reported and report_path.is_file():
            ends_at, has_reported = min(ends_at, time.monotonic() + EXIT_TIMEOUT_S), True
    raise subprocess.TimeoutExpired(process.args, timeout_s)


def _kill_process_group(process: subprocess.Popen[bytes]) -> None:
    """The process and whatever it left behind: a JVM must not outlive its job."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()


def _words_of_log(spec: JobSpec, path: Path) -> str:
    """Errors of runs are seen by everybody who is signed in, and what a SELECT or a transformer says may have values of rows."""
    if spec.pipeline is not None:
        return f"Its log is {path} on the machine of the worker; it may contain values of rows, so nothing of it is shown here."
    return f"The end of {path}:\n{_log_tail(path)}"


def _log_tail(path: Path) -> str:
    return "\n".join(path.read_text(errors="replace").splitlines()[-_LOG_TAIL_LINES:])
