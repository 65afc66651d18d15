"""The failpoint within a commit: all data is written, nothing is visible yet, and the process dies."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from ingestion.spark.session import jvm
from lakehub.kernel import failpoint

FAILPOINT = "ingestion.inside_commit"
_PROPERTY = "lakehub.failpoint"
_SLEEP_MS = 120_000
_VALIDATOR = "org.apache.hudi.client.validator.SqlQuerySingleResultPreCommitValidator"


@contextmanager
def sleep_inside_commit(spark: SparkSession) -> Iterator[dict[str, str]]:
    """Options that make the commit stop at its last check, where the failpoint is set; none otherwise."""
    if not failpoint.is_armed(FAILPOINT):
        yield {}
        return
    threading.Thread(target=_die_when_reached, args=(spark,), daemon=True).start()
    reached = f"reflect('java.lang.System', 'setProperty', '{_PROPERTY}', 'reached')"
    asleep = f"reflect('java.lang.Thread', 'sleep', {_SLEEP_MS}L)"
    stop = f"coalesce({reached}, '') || coalesce({asleep}, '')"
    query = f"select max(length(stopped)) * 0 from (select {stop} as stopped from <TABLE_NAME> limit 1)#0"  # noqa: S608  our own words
    yield {
        "hoodie.precommit.validators": _VALIDATOR,
        "hoodie.precommit.validators.single.value.sql.queries": query,
        # A bulk insert by rows, which is the default, does not ask the validators.
        "hoodie.datasource.write.row.writer.enable": "false",
    }


def _die_when_reached(spark: SparkSession) -> None:
    while jvm(spark).java.lang.System.getProperty(_PROPERTY) != "reached":
        time.sleep(0.02)
    failpoint.reach(FAILPOINT)
