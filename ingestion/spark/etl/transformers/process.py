"""Starts the process of the transformers beside a job, and waits for it as long as the job may take."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ingestion.spark.contract.strict_json import load
from ingestion.spark.environment import jvm_environment
from ingestion.spark.etl.transformers.request import Answer, Request
from ingestion.spark.job import Job, JobError
from lakehub.scratch import temporary_folder

_MODULE = "ingestion.spark.etl.transformers"
_POLL_S = 0.5


def transform(job: Job, given_uri: str, rows_uri: str, *, stays: tuple[str, ...], tries_halves: bool = False) -> None:
    """Writes what the transformers make of the rows at `given_uri`. Raises JobError with the transformer's name, and DeadlinePassed."""
    spec, gateway = job.pipeline_spec, _gateway(job)
    request = Request(
        gateway.port,
        gateway.auth_token,
        job.spec.run_id,
        spec.transformers_folder,
        spec.transformers,
        given_uri,
        rows_uri,
        spec.columns,
        stays,
        tries_halves,
    )
    answer = _ask(job, request)
    if answer.problem:
        raise JobError(answer.problem)


def _gateway(job: Job) -> Any:
    """Where the JVM of the job is asked."""
    gateway: Any = job.spark.sparkContext._gateway
    return gateway.gateway_parameters


def _ask(job: Job, request: Request) -> Answer:
    with temporary_folder("transformers") as folder:
        path = folder / "answer.json"
        code = _run_process(job, request, path)
        answer = load(Answer, path.read_text(), source="the answer") if path.is_file() else Answer()
    if answer.is_done:
        return answer
    names = answer.running or ", ".join(each.name for each in request.transformers)
    raise JobError(
        f"The transformer `{names}` ended its process (code {code}): it has to return the DataFrame that it makes, and to end nothing. Nothing was written."
    )


def _run_process(job: Job, request: Request, path: Path) -> int:
    """Its exit code. It is told by a pipe, which stays open as long as this process lives."""
    process = subprocess.Popen(
        [sys.executable, "-m", _MODULE, str(path)],
        stdin=subprocess.PIPE,
        stdout=2,  # what it prints is for the log
        env=_environment(),
        text=True,
        start_new_session=True,
    )
    assert process.stdin is not None
    try:
        with suppress(BrokenPipeError):
            process.stdin.write(f"{json.dumps(asdict(request))}\n")
            process.stdin.flush()
        while True:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(_POLL_S)
            job.check_deadline()
    finally:
        has_ended = process.poll() is not None
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # what it has started too
        if not has_ended:
            process.wait()
            job.spark.sparkContext.cancelJobGroup(request.group)
        with suppress(BrokenPipeError):
            process.stdin.close()


def _environment() -> dict[str, str]:
    """Of ours what a JVM may know: no secret is in it."""
    return jvm_environment(os.environ) | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
