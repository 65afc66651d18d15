"""What a person's query over SQLite cannot do even where the look at its text was fooled: the statements here go to the process unread."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from lakehub.catalog.metadata.tables import SqlTable
from lakehub.kernel.outcome import Outcome
from lakehub.setup.locations import PACKAGES
from quality.domain.language.measures import Answer, Measure
from quality.domain.language.values import Failed
from quality.engines import run_scan
from quality.engines.scans.parts import OnePartition
from quality.engines.scans.scan import Limits, Scan
from quality.engines.user_sql import confinement
from quality.engines.user_sql.confinement import run_confined
from tests.polling import scaled

PROGRAM = "quality.engines.user_sql.sqlite_sandbox"
MEMORY = 100_000_000


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("sqlite") / "shop.db"
    with sqlite3.connect(file) as connection:
        connection.executescript(
            """
            CREATE TABLE flights (id INTEGER, day TEXT, fare REAL);
            INSERT INTO flights VALUES (1, '2026-11-01', 0.5), (2, '2026-11-01', 1), (3, '2026-11-02', 2);
            CREATE TABLE people (name TEXT);
            INSERT INTO people VALUES ('bob');
            CREATE VIEW early AS SELECT * FROM flights WHERE id < 3;
            CREATE VIEW early_ids AS SELECT id FROM early;
            CREATE VIEW loading AS SELECT load_extension('/tmp/evil.so') AS done, id FROM flights;
            """
        )
    connection.close()
    return file


def _request(file: Path, sql: str, tables: tuple[str, ...] = ('"flights"',), **more: Any) -> dict[str, Any]:
    bounds: dict[str, Any] = {"memory": f"{MEMORY}B", "memory_bytes": MEMORY, "threads": 1, "seconds": scaled(20)}
    names = ["this", "seen", "people", "answered", "early"]
    request = {"path": str(file), "sql": sql, "parameters": [], "tables": list(tables), "defined_names": names}
    return request | bounds | more


def _run(file: Path, sql: str, tables: tuple[str, ...] = ('"flights"',), **more: Any) -> Answer | Failed:
    return run_confined(PROGRAM, _request(file, sql, tables, **more))


@pytest.mark.parametrize(
    ("sql", "tables", "answer"),
    [
        ("SELECT count(*) FROM flights", ('"flights"',), 3),
        ("WITH this AS (SELECT * FROM flights) SELECT count(*) FROM this", ('"main"."flights"',), 3),
        ("WITH this AS (SELECT * FROM flights) SELECT sum(fare) FROM this AS f", ('"flights"',), 3.5),
        ("WITH RECURSIVE seen AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM seen WHERE n < 9) SELECT max(n) FROM seen", (), 9),
        ("SELECT count(*) FROM early", ('"early"',), 2),
        ("SELECT sum(id) FROM early_ids", ('"early_ids"',), 3),
        ("SELECT count(*) FROM flights, people", ('"flights"', '"people"'), 3),
        ("SELECT round(avg(abs(fare)), 1) FROM flights WHERE day LIKE '%-01' AND strftime('%Y', day) = '2026'", ('"flights"',), 0.8),
        ("SELECT max(fare) FROM (SELECT lag(fare) OVER (ORDER BY id) AS fare FROM flights)", ('"flights"',), 1.0),
        ("SELECT json_extract('{\"a\": 7}', '$.a')", (), 7),
    ],
)  # fmt: skip
def test_it_answers_over_the_tables_that_it_was_given(
    file: Path, sql: str, tables: tuple[str, ...], answer: object
) -> None:
    assert _run(file, sql, tables) == answer


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM people",
        "SELECT count(name) FROM people",
        "SELECT count(*) FROM flights WHERE ('bob') IN people",
        "SELECT count(*) FROM flights WHERE EXISTS (SELECT 1 FROM people)",
        "SELECT sum(id) FROM early_ids",
        "WITH early AS (SELECT * FROM flights) SELECT sum(id) FROM early, main.early_ids",
        "SELECT count(*) FROM sqlite_master",
        "SELECT count(*) FROM sqlite_schema WHERE sql <> ''",
        "SELECT count(*) FROM sqlite_temp_schema",
        "SELECT count(*) FROM pragma_database_list",
        "SELECT count(*) FROM pragma_table_info('people')",
        "SELECT count(*) FROM dbstat",
        "SELECT count(*) FROM json_each('[1]')",
        "PRAGMA query_only = OFF",
        "PRAGMA hard_heap_limit = 0",
        "PRAGMA journal_mode = DELETE",
        "ATTACH '{folder}/stolen.db' AS stolen",
        "ATTACH ':memory:' AS stolen",
        "VACUUM INTO '{folder}/stolen.db'",
        "CREATE TABLE stolen AS SELECT 1",
        "CREATE TEMP TABLE stolen AS SELECT 1",
        "CREATE TEMP VIEW stolen AS SELECT * FROM people",
        "INSERT INTO flights VALUES (9, '', 0)",
        "DELETE FROM flights",
        "DROP TABLE flights",
        "BEGIN EXCLUSIVE",
        "SELECT load_extension('/tmp/evil.so')",
        "SELECT fts3_tokenizer('simple')",
        "SELECT length(randomblob(9))",
        "SELECT sqlite_compileoption_used('x')",
        "SELECT last_insert_rowid()",
        "SELECT 1; DELETE FROM flights",
        "SELECT count(*) FROM readfile('/etc/passwd')",
    ],
)
def test_it_reads_and_writes_nothing_else(file: Path, sql: str) -> None:
    before = {path.name: path.read_bytes() for path in file.parent.iterdir()}
    failed = _run(file, sql.format(folder=file.parent))
    assert isinstance(failed, Failed)
    assert any(word in failed.cause for word in _REFUSALS), failed.cause
    assert {path.name: path.read_bytes() for path in file.parent.iterdir()} == before


_REFUSALS = ("it may read the tables that it names", "You can only execute one statement", "no such table: ")


def test_a_view_that_was_given_does_no_more_than_compute_either(file: Path) -> None:
    failed = _run(file, "SELECT count(done) FROM loading", ('"loading"',))
    assert isinstance(failed, Failed)
    assert "unsafe use of load_extension()" in failed.cause


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT length(replace(hex(zeroblob(20000000)), '0', 'abcdefghij'))",
        # 400 MB; all of the rows are read even where the text is too long already.
        "WITH RECURSIVE seen AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM seen WHERE n < 200000) "
        "SELECT length(group_concat(hex(zeroblob(1000)))) FROM seen",
        "WITH RECURSIVE seen AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM seen) "
        "SELECT count(*) FROM (SELECT DISTINCT n, hex(zeroblob(500)) FROM seen)",
    ],
)
def test_it_has_no_more_memory_than_it_may_and_writes_no_file(file: Path, sql: str) -> None:
    failed = _run(file, sql, seconds=scaled(60))
    assert isinstance(failed, Failed)
    assert any(word in failed.cause for word in ("more memory than it may have", "a value that it cannot")), failed


ENDLESS = "WITH RECURSIVE seen AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM seen) SELECT max(n) FROM seen"


def test_it_ends_when_its_time_is_over(file: Path) -> None:
    begun = time.monotonic()
    assert _run(file, ENDLESS, seconds=1) == Failed(Outcome.ERROR, "the query took longer than its timeout")
    assert time.monotonic() - begun < scaled(10)


def test_it_ends_by_itself_where_its_parent_has_died(file: Path) -> None:
    command = [sys.executable, "-m", PROGRAM]
    given = json.dumps(_request(file, ENDLESS, seconds=0.2))
    child = subprocess.run(command, input=given, capture_output=True, text=True, timeout=scaled(60), check=False)
    stopped = '"problem": "the query took longer than its timeout"' in child.stdout
    assert stopped or child.returncode in (-signal.SIGALRM, -signal.SIGXCPU)


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT day FROM flights", "the query answers more than one row"),
        ("SELECT min(day) FROM flights", "the query answers a str, which is no number"),
        ("SELECT sum(9223372036854775807) FROM flights", "the query meets a value that it cannot convert"),
        ("SELECT json('k7' || day) FROM flights", "the query meets a value that it cannot convert"),
        ("SELECT missing FROM flights", "no such column: missing"),
    ],
)
def test_it_answers_one_number_and_its_errors_show_no_value(file: Path, sql: str, says: str) -> None:
    failed = _run(file, sql)
    assert isinstance(failed, Failed)
    assert failed.cause.startswith(says)
    assert "k7" not in failed.cause


# By the engine


class Noted(subprocess.Popen[str]):
    environments: list[dict[str, str]] = []  # noqa: RUF012  # of all that were started

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.environments.append(kwargs["env"])
        super().__init__(*args, **kwargs)


def test_the_engine_runs_every_query_over_sqlite_there(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEHUB_SECRET_KEY", "hush")
    monkeypatch.setattr(confinement.subprocess, "Popen", Noted)
    Noted.environments.clear()
    sql = "WITH found AS (SELECT fare FROM this WHERE day >= :start AND day <> 'a:b' AND id > 0.5) SELECT sum(fare) FROM found"
    query = Measure("query", values=(sql, date(2026, 11, 1), date(2026, 11, 2), "2026-11-01"))
    scan = Scan(SqlTable(f"sqlite:///{file}", "flights"), (query,), OnePartition("day", "2026-11-01"))
    assert run_scan("sqlalchemy", scan, Limits()).answers[query] == Decimal("1.5")
    names = {"PYTHONPATH", "PATH", "LANG", "TZ", "MALLOC_ARENA_MAX", "TMPDIR"}
    assert [set(given) for given in Noted.environments] == [names]


def test_a_long_query_over_sqlite_costs_its_process_only(file: Path) -> None:
    query = Measure("query", values=(ENDLESS.replace("max(n)", "max(n) + (SELECT count(*) FROM this)"),))
    scan = Scan(SqlTable(f"sqlite:///{file}", "flights"), (query,))
    answers = run_scan("sqlalchemy", scan, Limits(timeout=timedelta(seconds=1))).answers
    assert answers[query] == Failed(Outcome.ERROR, "the query took longer than its timeout")


CANCELLED = """
import sys
from datetime import timedelta
from lakehub.catalog.metadata.tables import SqlTable
from quality.domain.language.measures import Measure
from quality.engines import run_scan
from quality.engines.backends import database_connection
from quality.engines.scans.scan import Limits, Scan

database_connection._CANCEL_AFTER = timedelta()
database_connection._stop_sqlite_after = lambda connection, timeout: None  # as where one step takes long
measure = Measure("maximum", ("n",))
scan = Scan(SqlTable(f"sqlite:///{sys.argv[1]}", "endless"), (measure,))
print(run_scan("sqlalchemy", scan, Limits(timeout=timedelta(seconds=1))).answers[measure].cause)
"""


def test_a_scan_of_ours_is_cancelled_from_another_thread_and_the_process_lives(tmp_path: Path) -> None:
    """A connection that is closed under the thread that uses it ends the process by a signal."""
    file = tmp_path / "endless.db"
    with sqlite3.connect(file) as connection:
        connection.execute(f"CREATE VIEW endless AS {ENDLESS.replace('max(n)', 'n')}")
    connection.close()
    command = [sys.executable, "-c", CANCELLED, str(file)]
    env = os.environ | {"PYTHONPATH": str(PACKAGES)}
    ended = subprocess.run(command, env=env, capture_output=True, text=True, timeout=scaled(120), check=False)
    assert (ended.returncode, ended.stdout.strip()) == (0, "the scan took longer than its timeout"), ended.stderr
