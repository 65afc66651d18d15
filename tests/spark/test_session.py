"""A session leaves nothing in the directory that it is started in, and its JVM knows no secret."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ingestion.spark.environment import SecretForSpark, jvm_environment
from ingestion.spark.session import jvm
from lakehub import scratch
from lakehub.setup.locations import PACKAGES
from tests.polling import scaled, wait_until

PROGRAM = """
from ingestion.spark.session import close_session
from quality.spark.session import quality_session
spark = quality_session()
spark.sql("SHOW TABLES").collect()
close_session(spark)
"""


def test_what_spark_keeps_is_in_the_instances_folder(tmp_path: Path) -> None:
    home, here = tmp_path / "home", tmp_path / "here"
    here.mkdir()
    env = os.environ | {"PYTHONPATH": str(PACKAGES), "LAKEHUB_HOME": str(home)}
    subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=here, env=env, check=True, capture_output=True, timeout=scaled(120)
    )
    assert (home / "spark-warehouse").is_dir()
    assert list(here.iterdir()) == []


SECRETS = {
    "LAKEHUB_ENCRYPTION_KEY": "hunter2-encryption",
    "LAKEHUB_SECRET_KEY": "hunter2-secret",
    "LAKEHUB_DATABASE_URL": "postgresql://lakehub:hunter2@127.0.0.1/lakehub",
    "LAKEHUB_SMTP_URL": "smtp://lakehub:hunter2@127.0.0.1",
    "OPS_URL": "mysql://reader:hunter2@127.0.0.1/ops",
}

LOOK_AROUND = """
import json, os, sys
from pathlib import Path
from ingestion.spark.session import close_session, jvm_pid
from quality.spark.session import quality_session
from pyspark.sql.functions import udf
spark = quality_session()
spark.udf.register("of_worker", lambda name: os.environ.get(name))
name = "LAKEHUB_ENCRYPTION_KEY"
looked = {
    "jvm": Path(f"/proc/{jvm_pid(spark)}/environ").read_text().split("\\0"),
    "substituted": spark.sql("SELECT '${env:" + name + "}', '${spark.app.name}'").first()[:],
    "system": spark._jvm.java.lang.System.getenv(name),
    "worker": spark.range(1).selectExpr(f"of_worker('{name}')", "of_worker('LAKE_TOKEN')").first()[:],
    "own": os.environ[name],
}
Path(sys.argv[1]).write_text(json.dumps(looked))
close_session(spark)
"""


def test_no_secret_is_in_the_environment_of_the_jvm_or_of_its_workers_and_sql_reads_no_variable(tmp_path: Path) -> None:
    env = os.environ | SECRETS | {"PYTHONPATH": str(PACKAGES), "LAKEHUB_HOME": str(tmp_path)}
    env |= {"LAKE_TOKEN": "of the lake", "LAKEHUB_SPARK_ENVIRONMENT": "LAKE_TOKEN"}
    command = [sys.executable, "-c", LOOK_AROUND, str(tmp_path / "looked.json")]
    subprocess.run(command, env=env, check=True, capture_output=True, timeout=scaled(120))
    looked = json.loads((tmp_path / "looked.json").read_text())
    assert looked["own"] == "hunter2-encryption"
    assert [variable for variable in looked["jvm"] if "hunter2" in variable] == []
    assert {variable.partition("=")[0] for variable in looked["jvm"]}.isdisjoint(SECRETS)
    assert "LAKE_TOKEN=of the lake" in looked["jvm"]
    assert looked["substituted"] == ["${env:LAKEHUB_ENCRYPTION_KEY}", "${spark.app.name}"]
    assert looked["system"] is None
    assert looked["worker"] == [None, "of the lake"]


def test_a_variable_of_lakehub_is_never_named_for_spark() -> None:
    with pytest.raises(SecretForSpark, match="LAKEHUB_SPARK_ENVIRONMENT names LAKEHUB_SECRET_KEY"):
        jvm_environment({"LAKEHUB_SPARK_ENVIRONMENT": "AWS_PROFILE, LAKEHUB_SECRET_KEY"})


KILLED_JVM = """
import os, signal, subprocess, sys
from ingestion.spark.session import close_session, jvm_pid, open_session
from lakehub.scratch import scratch_root
spark = open_session()
files = [path for path in scratch_root().rglob("*.jar")]
print(sum(path.stat().st_size for path in files) >> 20, flush=True)
{end}
"""
KILL_JVM_AND_RENEW = """
os.kill(jvm_pid(spark), signal.SIGKILL)
close_session(spark)
print(len(list(scratch_root().iterdir())), flush=True)
"""
KILL_ALL = "print(jvm_pid(spark), flush=True); os.kill(os.getpid(), signal.SIGKILL)"


def test_the_jars_of_a_killed_jvm_go_with_its_session(tmp_path: Path) -> None:
    megabytes, folders = _in_a_process(tmp_path, KILLED_JVM.format(end=KILL_JVM_AND_RENEW)).split()
    assert int(megabytes) > 70, "Spark copies Hudi's jar somewhere else"
    assert folders == "0"


def test_the_jars_of_a_killed_process_are_swept_when_its_jvm_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEHUB_HOME", str(tmp_path / "home"))
    _, java = _in_a_process(tmp_path, KILLED_JVM.format(end=KILL_ALL)).split()
    (left,) = scratch.scratch_root().iterdir()
    assert f"~{java}~" in (left / scratch.OWNERS_FILE).read_text(), "the JVM is no owner of its folder"
    wait_until(lambda: not Path(f"/proc/{java}").exists() or scratch._process_start(int(java)) == -1)
    assert scratch.sweep_scratch() == [left]
    assert list(scratch.scratch_root().iterdir()) == []


def _in_a_process(folder: Path, program: str) -> str:
    """What it printed."""
    env = os.environ | {"PYTHONPATH": str(PACKAGES), "LAKEHUB_HOME": str(folder / "home")}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr[-3000:]
    return done.stdout


def test_settings_that_go_with_tasks_do_not_say_which_file_they_are_from(spark: SparkSession) -> None:
    """A thousand names of files would be compressed one by one, several times in each commit."""
    settings = spark._jsparkSession.sessionState().newHadoopConf()
    assert (settings.get("io.file.buffer.size"), settings.getPropertySources("io.file.buffer.size")) == ("65536", None)
    from_files = jvm(spark).org.apache.hadoop.conf.Configuration()
    assert from_files.size() > 500
    assert _sent_bytes(spark, settings) < 0.7 * _sent_bytes(spark, from_files)


def test_the_jvms_of_tests_take_their_classes_from_an_archive_where_there_is_one(spark: SparkSession) -> None:
    """`python -m tests` makes one first."""
    is_named = "SharedArchiveFile" in os.environ["JAVA_TOOL_OPTIONS"]
    assert "sharing" in jvm(spark).java.lang.System.getProperty("java.vm.info") or not is_named


def _sent_bytes(spark: SparkSession, settings: Any) -> int:
    out = jvm(spark).org.apache.hadoop.io.DataOutputBuffer()
    settings.write(out)
    return int(out.getLength())
