"""A session leaves nothing in the directory that it is started in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from lakehub.setup.locations import PACKAGES

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
    subprocess.run([sys.executable, "-c", PROGRAM], cwd=here, env=env, check=True, capture_output=True, timeout=120)
    assert (home / "spark-warehouse").is_dir()
    assert list(here.iterdir()) == []
