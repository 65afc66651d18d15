"""Starts the processes in which people's queries run, and takes their answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import duckdb

from lakehub.scratch import temporary_folder
from quality.domain.language.measures import Answer
from quality.domain.language.values import Failed, error
from quality.engines.scans.memory_size import parse_memory_size
from quality.engines.scans.scan import Limits
from quality.engines.user_sql.child_process import TIMEOUT_MESSAGE, decode_value

_REPOSITORY_ROOT = Path(__file__).resolve().parents[3]


def limits_of_child(limits: Limits) -> dict[str, object]:
    """The part of a request that bounds the process."""
    return {
        "memory": limits.memory,
        "memory_bytes": parse_memory_size(limits.memory),
        "threads": limits.threads,
        "seconds": limits.timeout.total_seconds(),
    }


def run_confined(program: str, request: Mapping[str, object]) -> Answer | Failed:
    """The answer of a program of ours to a request; it is killed when its time is over. Raises duckdb.IOException where a
    file has gone that it was to read."""
    seconds = float(str(request["seconds"]))
    # What it spills lies in a folder of this process: of a child that is killed it goes too.
    with (
        temporary_folder("query") as spill,
        subprocess.Popen(
            [sys.executable, "-m", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={
                "PYTHONPATH": str(_REPOSITORY_ROOT),
                "PATH": os.defpath,
                "LANG": "C.UTF-8",
                "TZ": "UTC",
                "MALLOC_ARENA_MAX": "2",
                "TMPDIR": str(spill),
            },
            cwd="/",
            text=True,
        ) as child,
    ):
        try:
            out, _ = child.communicate(json.dumps(request), timeout=seconds)
        except subprocess.TimeoutExpired:
            child.kill()
            return error(TIMEOUT_MESSAGE)
    return _decode_output(out, child.returncode)


def _decode_output(out: str, exit_code: int) -> Answer | Failed:
    if exit_code or not out:
        return error(
            f"the query was stopped: {_SIGNAL_CAUSES.get(-exit_code, 'it needs more memory than it may have')}"
        )
    reply = json.loads(out)
    if "gone" in reply:
        raise duckdb.IOException(f"{reply['gone']} is gone")
    if "problem" in reply:
        return error(reply["problem"])
    answer: Answer = decode_value(reply["answer"])
    return answer


_SIGNAL_CAUSES = {
    9: "the system ended it, as a rule for want of memory",
    14: "it took longer than its timeout",
    24: "it took longer than its timeout",
    25: "it writes too much",
}
"""By signal: the alarm clock, processor time, the size of a file."""
