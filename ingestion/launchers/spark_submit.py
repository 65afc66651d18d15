"""Each job as a process of its own, handed to a cluster (or this machine) by spark-submit: the code as a zip, the secrets through a pipe, the output in a log file."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO
from urllib.parse import quote

import ingestion
import lakehub
from ingestion.launchers import LauncherConfig
from ingestion.spark.contract.progress import FILE_NAME, JobProgress
from ingestion.spark.contract.report import FAILED, JobReport
from ingestion.spark.contract.secrets import offered_secrets
from ingestion.spark.contract.spec import JobSpec
from ingestion.spark.environment import jvm_environment
from ingestion.spark.session import hudi_jar, java_home, scratch_settings, submit_settings
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
    # What a source from outside the tree shares with its storage.
    "lakehub/catalog/__init__.py",
    "lakehub/catalog/metadata",
    "lakehub/catalog/storages",
    "ingestion/__init__.py",
    "ingestion/domain",
    "ingestion/sources",
    "ingestion/spark",
)
_LOG_TAIL_LINES = 15


class SparkSubmitLauncher:
    def __init__(self, config: LauncherConfig) -> None:
        self._config = config

    def run(self, spec: JobSpec, secrets: Mapping[str, str]) -> JobReport:
        folder = self._folder(spec.run_id)
        folder.mkdir(parents=True, exist_ok=True)
        spec_path, report_path, log_path = (folder / name for name in ("spec.json", "report.json", "log.txt"))
        report_path.unlink(missing_ok=True)
        (folder / FILE_NAME).unlink(missing_ok=True)
        spec_path.write_text(spec.to_json())
        ended = self._submit(spec, spec_path, report_path, log_path, secrets)
        if report_path.is_file():
            return JobReport.from_file(report_path)
        return JobReport(
            run_id=spec.run_id, status=FAILED, error=f"{ended}. The end of {log_path}:\n{_log_tail(log_path)}"
        )

    def progress(self, run_id: str) -> JobProgress | None:
        return JobProgress.from_file(self._folder(run_id) / FILE_NAME)

    def close(self) -> None:
        """Nothing is kept."""

    def _folder(self, run_id: str) -> Path:
        return self._config.folder / quote(run_id, safe="")

    def _submit(
        self, spec: JobSpec, spec_path: Path, report_path: Path, log_path: Path, secrets: Mapping[str, str]
    ) -> str:
        """How the process ended, in words."""
        with (
            log_path.open("ab") as log,
            temporary_folder("jvm") as scratch,
            offered_secrets(spec_path.with_name("secrets"), secrets) as pipe,
        ):
            command = [*self._command(scratch), str(_main_file()), str(spec_path), str(report_path), str(pipe)]
            return self._run_to_end(command, spec, log, scratch)

    def _run_to_end(self, command: list[str], spec: JobSpec, log: IO[bytes], scratch: Path) -> str:
        process = subprocess.Popen(
            command,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        add_owner(scratch, process.pid)
        try:
            return f"The job's process ended with code {process.wait(spec.deadline_s + EXIT_TIMEOUT_S)} and no report"
        except subprocess.TimeoutExpired:
            return f"The job was stopped: it took longer than its deadline of {spec.deadline_s:g} s"
        finally:
            _kill_process_group(process)

    def _command(self, scratch: Path) -> list[str]:
        config = self._config
        settings = submit_settings(config.master, config.memory, config.jar or hudi_jar(os.environ))
        settings |= scratch_settings(scratch)
        options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
        return [_spark_submit(), *options, "--py-files", str(build_code_zip(config.folder))]

    def _environment(self) -> dict[str, str]:
        """Of our own environment only what a program needs to start: what else is in it may be secret. Raises SecretForSpark."""
        home = self._config.java_home or java_home(os.environ)
        return {
            **jvm_environment(os.environ),
            "JAVA_HOME": home,
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
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


def _kill_process_group(process: subprocess.Popen[bytes]) -> None:
    """The process and whatever it left behind: a JVM must not outlive its job."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()


def _log_tail(path: Path) -> str:
    return "\n".join(path.read_text(errors="replace").splitlines()[-_LOG_TAIL_LINES:])
