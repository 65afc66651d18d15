"""On a cluster a session has the executors that were asked for, of the size that was asked for, and no more."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark

from ingestion.spark.session import java_home
from lakehub.setup.locations import PACKAGES
from tests.polling import scaled

PROGRAM = """
import json, re
from pathlib import Path
from tests.polling import wait_until
from pyspark.sql import SparkSession
from ingestion.domain.resources.job_resources import JobResources
from ingestion.spark.core_seconds import task_s
from ingestion.spark.session import sized_settings

builder = SparkSession.builder
for name, value in sized_settings(JobResources(cores=2, executors=2, executor_memory_mib=512), "spark://cluster:7077").items():
    builder = builder.config(name, value)
# Three machines of two cores. Jobs wait until all executors are there that the settings allow.
builder = builder.config("spark.master", "local-cluster[3,2,1024]").config("spark.scheduler.minRegisteredResourcesRatio", "1.0")
spark = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.ui.enabled", "false").getOrCreate()
before = task_s(spark)
assert spark.range(8).count() == 8
wait_until(lambda: task_s(spark) > before)  # Spark counts a task a moment after its end
commands = []
for process in Path("/proc").glob("[0-9]*/cmdline"):
    try:
        commands.append(process.read_bytes().decode(errors="replace").replace(chr(0), " "))
    except OSError:
        pass  # it has ended
own = [each for each in commands if "CoarseGrainedExecutorBackend" in each and spark.sparkContext.applicationId in each]
print(json.dumps([[re.search(size, each)[1] for size in ("-Xmx([0-9]+M)", "--cores ([0-9]+)")] for each in own]))
spark.stop()
"""


def test_it_has_the_executors_that_were_asked_for_and_no_more(tmp_path: Path) -> None:
    # The machines of such a cluster keep their files in Spark's own folder.
    spark_home, installed = tmp_path / "spark", Path(pyspark.__file__).parent
    spark_home.mkdir()
    for name in ("bin", "jars"):
        (spark_home / name).symlink_to(installed / name)
    env = os.environ | {
        "PYTHONPATH": str(PACKAGES),
        "JAVA_HOME": java_home(os.environ),
        "SPARK_HOME": str(spark_home),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=scaled(120),
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == [["512M", "2"]] * 2
