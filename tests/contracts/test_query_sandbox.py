"""What a person's query cannot do even where the look at its text was fooled: the statements here go to the process unread."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehub.kernel.outcome import Outcome
from quality.domain.language.measures import Answer
from quality.domain.language.values import Failed
from quality.engines.backends.duckdb_files import TABLE_FUNCTIONS
from quality.engines.user_sql import confinement
from quality.engines.user_sql.confinement import run_confined
from tests.polling import scaled

MEMORY = 100_000_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    pq.write_table(pa.table({"id": list(range(20_000)), "day": ["a", "b"] * 10_000}), folder / "given.parquet")
    pq.write_table(pa.table({"secret": [1]}), folder / "other.parquet")
    (folder / "other.csv").write_text("secret\n1\n")
    return folder


def _request(folder: Path, sql: str, seconds: float | None = None, memory: int = MEMORY) -> dict[str, Any]:
    given = {
        "reader": TABLE_FUNCTIONS["parquet"],
        "paths": [str(folder / "given.parquet")],
        "where": "\"day\" = 'a'",
    }
    limits = {"memory": f"{memory}B", "memory_bytes": memory, "threads": 1, "seconds": seconds or scaled(20)}
    return {"sql": sql, "parameters": {}, "tables": {"this": given}, **limits}


def run_in_sandbox(request: dict[str, Any]) -> Answer | Failed:
    return run_confined("quality.engines.user_sql.sandbox", request)


def test_it_answers_over_the_part_that_it_was_given(folder: Path) -> None:
    assert run_in_sandbox(_request(folder, "SELECT count(*) FROM this")) == 10_000


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM read_text('/etc/passwd')",
        "SELECT count(*) FROM read_csv('/etc/passwd', header = false)",
        "SELECT count(*) FROM '{folder}/other.parquet'",
        "SELECT count(*) FROM read_csv('{folder}/other.csv')",
        "SELECT count(*) FROM glob('{folder}/*')",
        "COPY this TO '{folder}/stolen.csv'",
        "COPY this TO '{folder}/given.parquet.csv'",
        "ATTACH '{folder}/stolen.db' AS stolen",
        "EXPORT DATABASE '{folder}/stolen'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SELECT count(*) FROM read_csv('http://127.0.0.1:9/x.csv')",
        "SET enable_external_access = true",
        "SET memory_limit = '100GB'",
        "SET allowed_paths = ['/etc/passwd']",
        "COPY (SELECT 1 AS id, 'a' AS day) TO '{folder}/given.parquet' (FORMAT parquet, USE_TMP_FILE false)",
        "SELECT 1; COPY (SELECT 1 AS id, 'a' AS day) TO '{folder}/given.parquet' (USE_TMP_FILE false)",
        "EXPLAIN ANALYZE COPY (SELECT 1 AS id, 'a' AS day) TO '{folder}/given.parquet' (USE_TMP_FILE false)",
        "CREATE TABLE big AS SELECT * FROM this",
        "PRAGMA database_list",
        "SELECT count(*) FROM request",
    ],
)
def test_it_opens_and_writes_nothing_else(folder: Path, sql: str) -> None:
    before = {file: file.read_bytes() for file in sorted(folder.iterdir())}
    try:
        failed = run_in_sandbox(_request(folder, sql.format(folder=folder)))
    except duckdb.IOException as refused:
        failed = Failed(Outcome.ERROR, str(refused))
    assert isinstance(failed, Failed)
    assert any(word in failed.cause for word in _REFUSALS), failed.cause
    assert {file: file.read_bytes() for file in sorted(folder.iterdir())} == before


_REFUSALS = (
    "the query may only read",
    "file system operations are disabled",
    "disabled by configuration",
    "has been locked",
    "Table with name request does not exist",
    "Cannot enable external access while database is running",
    "Loading external extensions is disabled",
)


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT min(day) FROM this", "the query answers a str, which is no number"),
        ("SELECT min('k7' || day)::INTEGER FROM this", "the query meets a value that it cannot convert"),
        ("SELECT max(strptime('k7' || day, '%Y') - now()::TIMESTAMP) FROM this", "the query meets a value"),
        ("SELECT max(('k7' || day)::DATE) FROM this", "the query meets a value"),
    ],
)
def test_its_errors_show_no_value(folder: Path, sql: str, says: str) -> None:
    failed = run_in_sandbox(_request(folder, sql))
    assert isinstance(failed, Failed)
    assert failed.cause.startswith(says)
    assert "k7" not in failed.cause


def test_it_has_no_more_memory_than_it_may(folder: Path) -> None:
    for sql in (
        "SELECT max(length(repeat(day, 2000000000))) FROM this",
        "SELECT length(list(a.id)::VARCHAR) FROM this a, this b",
    ):
        failed = run_in_sandbox(_request(folder, sql, seconds=scaled(60)))
        assert isinstance(failed, Failed), sql
        assert "emory" in failed.cause


ENDLESS = "WITH RECURSIVE endless AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM endless) SELECT max(n) FROM endless"


def test_it_ends_when_its_time_is_over(folder: Path) -> None:
    begun = time.monotonic()
    assert run_in_sandbox(_request(folder, ENDLESS, seconds=1)) == Failed(
        Outcome.ERROR, "the query took longer than its timeout"
    )
    assert time.monotonic() - begun < scaled(10)


def test_it_ends_by_itself_where_its_parent_has_died(folder: Path) -> None:
    child = _python(
        "from quality.engines.user_sql.sandbox import main; main()", json.dumps(_request(folder, ENDLESS, seconds=0.2))
    )
    assert (child.returncode in (-signal.SIGALRM, -signal.SIGXCPU), child.stdout) == (True, "")


@pytest.mark.parametrize(
    ("seconds", "work", "ends"),
    [
        (0, "signal.pause()", -signal.SIGALRM),
        (100, "while True: pass", -signal.SIGXCPU),
        (100, "bytearray(4 * 2**30)", 1),
        (100, "open('{}', 'wb').write(bytes(2**20))", -signal.SIGXFSZ),
    ],
)
def test_the_system_bounds_whatever_runs_in_it(tmp_path: Path, seconds: int, work: str, ends: int) -> None:
    """A second of time on the clock, a second of processor time, 1 GB, 2 kB of a file."""
    confined = f"from quality.engines.user_sql.sandbox import limit_process; limit_process(seconds={seconds}, memory=1000, threads=0)"
    unignored = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_DFL)"
    assert _python(f"{confined}; {unignored}\n{work.format(tmp_path / 'big')}").returncode == ends


def _python(code: str, given: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=scaled(60), check=False)


def test_it_knows_no_secret_of_its_parent(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEHUB_SECRET_KEY", "hush")
    given: dict[str, str] = {}

    class Noted(subprocess.Popen[str]):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            given.update(kwargs["env"])
            super().__init__(*args, **kwargs)

    monkeypatch.setattr(confinement.subprocess, "Popen", Noted)
    assert run_in_sandbox(_request(folder, "SELECT count(*) FROM this")) == 10_000
    assert "hush" in os.environ.values()
    assert set(given) == {"PYTHONPATH", "PATH", "LANG", "TZ", "MALLOC_ARENA_MAX", "TMPDIR"}


def test_a_file_that_vanished_is_told_apart(folder: Path) -> None:
    request = _request(folder, "SELECT count(*) FROM this")
    request["tables"]["this"]["paths"] = [str(folder / "gone.parquet")]
    with pytest.raises(duckdb.IOException):
        run_in_sandbox(request)
