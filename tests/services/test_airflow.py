"""The DAGs of the documentation in a real Airflow: one waits for the incident of an input, goes on, and what it wrote is tested; one asks for a run of
Lakehub's own ingestion and waits for it."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pytest_django.live_server_helper import LiveServer

from incidents.lifecycle.intake import process_flips
from incidents.models import GateQuestion
from ingestion.models import JobKind, JobRun, JobState
from lakehub.accounts.models import Role
from lakehub.accounts.tokens import api_tokens
from lakehub.setup.artifacts import PROJECT_ROOT
from quality.models import ExternalRun, Unit
from tests import factories as make
from tests.conftest import require
from tests.factories import HOUR, MINUTE, NOW
from tests.polling import scaled, wait_until
from tests.requirements import Service
from tests.web.incidents.failing_dataset import BAD_DAY, FailingDataset

pytestmark = pytest.mark.django_db(transaction=True)

WITHIN_S = 60
WAITS = "Waits: flights@dc1 is fail: sustained, incident #"
PROBE = """
import logging, sys
from types import SimpleNamespace
from airflow.exceptions import AirflowFailException
from lakehub_client.airflow import GateSensor
sensor = GateSensor(task_id="inputs", inputs=[{"dataset": "fligths", "from": "2026-11-16", "to": "2026-11-17"}])
try:
    print("poked:", sensor.poke({"ti": SimpleNamespace(dag_id="d", task_id="inputs", run_id="r")}))
except AirflowFailException as problem:
    print("failed:", problem)
"""

AGAIN = """
from airflow.models import DagBag, DagRun
from airflow.utils.session import create_session
dag = DagBag(include_examples=False).get_dag("delays_by_carrier")
for task in ("build", "finished"):
    dag.clear(task_ids=[task])
with create_session() as session:
    (run,) = session.query(DagRun).filter_by(dag_id=dag.dag_id).all()
    finished = run.get_task_instance("finished", session=session)
    finished.refresh_from_task(dag.get_task("finished"))
    finished.run(ignore_all_deps=True, session=session)
    print("finished:", finished.state)
"""
"""What clearing the tasks on Airflow's page does, and the scheduler after that."""


@pytest.fixture(scope="session")
def airflow() -> str:
    """Airflow's command, in its own environment."""
    return require(Service.AIRFLOW)


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> FailingDataset:
    """flights, whose bad day failed; weather, which is good; and delays, which the DAG makes from them."""
    monkeypatch.setattr("lakehub.clock.now", lambda: NOW)
    made = FailingDataset(copies=("dc1",))
    made.opened(BAD_DAY, "dc1")
    for name in ("weather", "delays"):
        make.unit(make.quality_test(make.dataset(name), due_after=HOUR), over=BAD_DAY)
    return made


@pytest.fixture
def env(stage: FailingDataset, live_server: LiveServer, tmp_path: Path) -> dict[str, str]:
    """Airflow at home in `tmp_path`, with a connection to Lakehub, sending nothing home."""
    ines = make.user("ines")
    make.member(ines, stage.dataset.team, Role.OWNER)
    _, token = api_tokens.issue_token(
        name="airflow",
        consumer="etl",
        team=stage.dataset.team,
        created_by=ines,
        scopes=("gate:read", "quality:run", "ingestion:read", "ingestion:run"),
        now=NOW,
    )
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    return kept | {
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "SCARF_ANALYTICS": "false",
        "AIRFLOW__LAKEHUB__POKE_INTERVAL": "1",
        "AIRFLOW_CONN_LAKEHUB": json.dumps({"conn_type": "http", "host": live_server.url, "password": token}),
        "PYTHONPATH": str(PROJECT_ROOT),
    }


@contextmanager
def running(
    airflow: str, env: dict[str, str], *command: str
) -> Iterator[tuple[subprocess.Popen[bytes], Callable[[], str]]]:
    """The process, and what it has printed so far."""
    log = Path(env["AIRFLOW_HOME"]).parent / "log"
    with log.open("wb") as out:
        process = subprocess.Popen([airflow, *command], env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        yield process, lambda: log.read_text(errors="replace")
    finally:
        process.kill()
        process.wait()


def install_example(env: dict[str, str], page: str = "pipelines.md") -> None:
    """The DAG as the page has it."""
    blocks = re.findall(r"```python\n(.*?)```", (PROJECT_ROOT / "docs" / page).read_text(), re.DOTALL)
    (code,) = (block for block in blocks if "lakehub_client.airflow" in block)
    folder = Path(env["AIRFLOW_HOME"]) / "dags"
    folder.mkdir(parents=True)
    (folder / "example.py").write_text(code)


def printed(airflow: str, env: dict[str, str], code: str) -> str:
    """The last line that `code` prints in Airflow's Python."""
    python = Path(airflow).with_name("python")
    done = subprocess.run([python, "-c", code], env=env, capture_output=True, text=True, timeout=scaled(WITHIN_S))
    return done.stdout.splitlines()[-1] if done.stdout else done.stderr


def test_the_dag_waits_for_its_input_and_what_it_wrote_is_tested(
    airflow: str, env: dict[str, str], stage: FailingDataset
) -> None:
    install_example(env)
    subprocess.run([airflow, "db", "migrate"], env=env, check=True, capture_output=True, timeout=scaled(WITHIN_S))
    with running(airflow, env, "dags", "test", "delays_by_carrier", "2026-11-16") as (process, output):
        wait_until(lambda: WAITS in output() or process.poll() is not None, within_s=WITHIN_S, otherwise=output)
        assert WAITS in output(), output()[-3000:]
        assert not ExternalRun.objects.exists()
        stage.passes(stage.unit(BAD_DAY, "dc1"), at=NOW + MINUTE)
        process_flips(now=NOW + MINUTE)
        assert process.wait(scaled(WITHIN_S)) == 0, output()[-3000:]
        log = output()
    assert "All inputs may be read: pass" in log
    assert log.index("All inputs may be read") < log.index("here the delays of 2026-11-16 are built")
    run = ExternalRun.objects.get()
    assert (run.copy.dataset.name, run.start, run.end, run.via) == ("delays", BAD_DAY.start, BAD_DAY.end, "airflow")
    assert run.run_id.startswith("delays_by_carrier/manual__2026-11-16")
    delays = Unit.objects.filter(copy__dataset__name="delays")
    assert delays.get().due_at == NOW
    # One question for each input, however often it was asked; the consumer is the token's.
    asked = GateQuestion.objects.values_list("copy__dataset__name", "consumer").order_by("copy__dataset__name")
    assert list(asked) == [("flights", "etl"), ("weather", "etl")]
    # The data is repaired by clearing the tasks and running them again: Airflow's run is the same, what it wrote is not.
    delays.update(due_at=NOW + HOUR)
    assert printed(airflow, env, AGAIN) == "finished: success"
    assert ExternalRun.objects.count() == 2
    assert delays.get().due_at == NOW


def test_what_makes_no_sense_fails_and_what_is_out_of_reach_waits(airflow: str, env: dict[str, str]) -> None:
    message = "failed: The gate cannot answer that: There is no dataset `fligths`. Did you mean `flights`?"
    assert printed(airflow, env, PROBE).startswith(message)
    nowhere = json.dumps({"conn_type": "http", "host": "http://127.0.0.1:9", "password": "x"})
    assert printed(airflow, env | {"AIRFLOW_CONN_LAKEHUB": nowhere}, PROBE) == "poked: False"


@pytest.fixture
def modelled(stage: FailingDataset) -> None:
    """A dataset of the name in the example, whose table is there."""
    dataset = make.dataset("flights-by-day")
    make.feed(dataset)
    make.run(make.with_table(make.copy_of(dataset)), JobKind.BOOTSTRAP)


@pytest.mark.parametrize(
    ("state", "error", "exit_code"), [(JobState.SUCCEEDED, "", 0), (JobState.FAILED, "No space left on device", 1)]
)
def test_a_run_is_asked_for_and_its_error_is_the_tasks(
    airflow: str, env: dict[str, str], modelled: None, state: JobState, error: str, exit_code: int
) -> None:
    install_example(env, "modelled-tables.md")
    subprocess.run([airflow, "db", "migrate"], env=env, check=True, capture_output=True, timeout=scaled(WITHIN_S))
    asked = JobRun.objects.filter(kind=JobKind.INCREMENTAL)
    with running(airflow, env, "dags", "test", "flights_by_day", "2026-11-16") as (process, output):
        wait_until(lambda: asked.exists() or process.poll() is not None, within_s=WITHIN_S, otherwise=output)
        run = asked.get()
        waits = f"Run {run.pk} of flights-by-day: queued"
        wait_until(lambda: waits in output() or process.poll() is not None, within_s=WITHIN_S, otherwise=output)
        assert waits in output(), output()[-3000:]
        asked.update(state=state, error=error, ended_at=NOW)
        code = process.wait(scaled(WITHIN_S))
        log = output()
    assert asked.count() == 1
    assert (code != 0) == bool(exit_code), log[-3000:]
    assert (f"Run {run.pk} of flights-by-day has failed: {error}" in log) == bool(error)
