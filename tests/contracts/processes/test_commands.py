from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from lakehub.processes import celery_app, commands


def test_all_the_processes_of_the_procfile_run_by_default() -> None:
    assert list(commands.process_commands()) == ["web", "worker", "incidents", "spark", "follow", "tap", "beat"]


def test_spark_has_a_worker_and_a_queue_of_its_own_that_runs_one_job_at_a_time() -> None:
    line = commands.process_commands(["spark"])["spark"]
    assert "--queues spark" in line
    assert "--pool solo" in line


def test_incidents_and_messages_have_a_lane_of_their_own() -> None:
    """No task that reads a source is in it, and all of theirs are."""
    lines = commands.process_commands(["worker", "incidents"])
    queues = {name: re.search(r"--queues (\S+)", line) for name, line in lines.items()}
    assert {name: queue and queue[1] for name, queue in queues.items()} == {
        "worker": "default",
        "incidents": "incidents",
    }
    celery_app.app.loader.import_default_modules()
    ours = [name for name in celery_app.app.tasks if name.split(".")[0] in ("ingestion", "quality", "incidents")]
    assert len(ours) > 10
    for name in ours:
        queue = celery_app.app.amqp.router.route({}, name)["queue"].name
        assert (queue == "incidents") == name.startswith("incidents."), name


def test_a_process_that_is_not_there_is_named_with_the_nearest() -> None:
    with pytest.raises(commands.UnknownProcess, match="Did you mean `worker`"):
        commands.process_commands(["wroker"])


def test_with_reload_each_process_is_watched() -> None:
    assert all(line.startswith("watchfiles ") for line in commands.process_commands(reload=True).values())


def test_the_interpreters_own_programs_come_first_on_the_path() -> None:
    path = commands.process_environment("127.0.0.1:8000", {"PATH": "/usr/bin"})["PATH"]
    assert path.split(os.pathsep) == [str(Path(sys.executable).parent), "/usr/bin"]
