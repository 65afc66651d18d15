"""What a JVM, and whatever it starts, may know of this process's environment: by name, so that no secret gets there unnamed.

SQL that people write runs in that JVM, its Python workers inherit its variables, and on Linux whoever may read /proc sees them.
"""

from __future__ import annotations

from collections.abc import Mapping

EXTRA_NAMES = "LAKEHUB_SPARK_ENVIRONMENT"
"""The variable that names more, for lakes and clusters that take credentials from the environment."""

_INHERITED = """
PATH HOME USER LOGNAME SHELL LANG LC_ALL TZ TMPDIR LD_LIBRARY_PATH
JAVA_HOME PYTHONPATH PYTHONHASHSEED PYSPARK_PYTHON PYSPARK_DRIVER_PYTHON PYSPARK_SUBMIT_ARGS
SPARK_HOME SPARK_CONF_DIR SPARK_LOCAL_DIRS SPARK_LOCAL_IP SPARK_LOCAL_HOSTNAME SPARK_USER
HADOOP_HOME HADOOP_CONF_DIR HADOOP_USER_NAME YARN_CONF_DIR KUBECONFIG KRB5CCNAME KRB5_CONFIG
LAKEHUB_FAILPOINT LAKEHUB_LOG_FORMAT LAKEHUB_LOG_LEVEL
"""
_INHERITED_NAMES = frozenset(_INHERITED.split())
_OWN_PREFIX = "LAKEHUB_"


class SecretForSpark(ValueError):
    """A variable of Lakehub's own is named for Spark."""


def jvm_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of `environ` that a JVM is started with. Raises SecretForSpark."""
    extra = {name.strip() for name in environ.get(EXTRA_NAMES, "").split(",") if name.strip()}
    if own := sorted(name for name in extra if name.upper().startswith(_OWN_PREFIX)):
        raise SecretForSpark(
            f"{EXTRA_NAMES} names {own[0]}: variables of Lakehub hold its keys and never go to Spark. Remove it."
        )
    return {name: value for name, value in environ.items() if name in _INHERITED_NAMES | extra}
