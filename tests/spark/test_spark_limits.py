"""A query that Spark does not end is ended with its JVM; the next scan has a new one. In a process of its own, which loses its JVM."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from lakehub.setup.locations import PACKAGES
from tests.polling import scaled

PROGRAM = """
import json, os, sys, time
from datetime import timedelta
from pathlib import Path
from ingestion.spark import session
from ingestion.spark.session import close_session, jvm_pid
from lakehub.catalog.metadata.tables import HudiCopy
from quality.domain.language.measures import ROWS, Measure
from quality.engines import run_scan
from quality.engines.backends import spark_deadline
from quality.engines.scans.parts import CannotRead
from quality.engines.scans.scan import Limits, Scan
from quality.engines.user_sql import user_queries
from quality.spark.session import quality_session

# What looks at the text is taken away: what is here holds where that was fooled.
user_queries.check_patterns = lambda statement, dialect: None
spark_deadline.KILL_AFTER = timedelta(seconds=2)
# A sign of life of the executor would mend a status that has left tasks out.
session._BASE_SETTINGS["spark.executor.heartbeatInterval"] = "100s"
uri = f"file://{sys.argv[1]}/words"
spark = quality_session()
options = {
    "hoodie.table.name": "words", "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "", "hoodie.datasource.write.operation": "bulk_insert",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "hoodie.metadata.enable": "false", "hoodie.embed.timeline.server": "false", "hoodie.bulkinsert.shuffle.parallelism": "1",
}
rows = spark.createDataFrame([(1, "a" * 60 + "c"), (2, "b")], "id long, word string")
rows.write.format("hudi").options(**options).mode("append").save(uri)


def ask(sql, seconds=120):
    query = Measure("query", values=(sql,))
    begun, jvm = time.monotonic(), jvm_pid(quality_session())
    try:
        answer = str(run_scan("spark", Scan(HudiCopy(uri), (query,)), Limits(timeout=timedelta(seconds=seconds))).answers[query])
    except CannotRead as failed:
        answer = str(failed)
    return {"answer": answer, "seconds": time.monotonic() - begun, "alive": Path(f"/proc/{jvm}").exists(), "jvm": jvm}


found = {
    "count": ask("SELECT count(*) FROM this WHERE word LIKE 'a%'"),
    "text": ask("SELECT max(word) FROM this"),
    "two": ask("SELECT id, id FROM this"),
    "rows": ask("SELECT id FROM this"),
    "null": ask("SELECT max(id) FROM this WHERE id > 5"),
    # In a task that follows another at once, and with time enough that it has begun.
    "endless": ask(f"SELECT count(*) FROM (SELECT max(word) AS longest FROM this GROUP BY id) WHERE longest RLIKE '{'a*' * 10}b'", seconds=float(sys.argv[3])),
    "after_endless": ask("SELECT count(*) FROM this"),
    "memory": ask("SELECT max(length(repeat(word, 30000000))) FROM this"),
    "after_memory": ask("SELECT count(*) FROM this"),
}
Path(sys.argv[2]).write_text(json.dumps(found))
close_session(quality_session())
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("limits")
    env = os.environ | {"PYTHONPATH": str(PACKAGES), "LAKEHUB_HOME": str(folder), "LAKEHUB_SPARK_MEMORY": "600m"}
    command = [sys.executable, "-c", PROGRAM, str(folder), str(folder / "answers.json"), str(scaled(10))]
    ended = subprocess.run(command, env=env, capture_output=True, text=True, timeout=scaled(400), check=False)
    assert ended.returncode == 0, ended.stderr[-5_000:]
    return json.loads((folder / "answers.json").read_text())


def test_a_task_that_looks_at_no_interrupt_ends_with_its_jvm(answers: Any) -> None:
    endless = answers["endless"]
    assert "the scan took longer than its timeout" in endless["answer"]
    assert endless["alive"] is False
    assert endless["seconds"] < scaled(30)


def test_the_next_scan_has_a_new_jvm(answers: Any) -> None:
    assert (answers["after_endless"]["answer"], answers["after_memory"]["answer"]) == ("2", "2")
    assert len({answers[name]["jvm"] for name in ("endless", "after_endless", "after_memory")}) == 3


def test_a_query_that_takes_all_memory_ends_the_jvm_and_says_so(answers: Any) -> None:
    assert "Spark ended during the scan, as a rule for want of memory" in answers["memory"]["answer"]
    assert answers["memory"]["alive"] is False


def test_only_one_number_comes_out(answers: Any) -> None:
    assert answers["count"]["answer"] == "1"
    assert answers["null"]["answer"] == "None"
    for name, says in {
        "text": "answers a str, which is no number",
        "two": "answers 2 columns",
        "rows": "answers more than one row",
    }.items():
        assert says in answers[name]["answer"]
