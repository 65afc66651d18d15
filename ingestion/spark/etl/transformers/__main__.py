"""The process of the transformers: `python -m ingestion.spark.etl.transformers ANSWER`, told by its input what to do. It uses the JVM of its job, and ends when the job's process does."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from threading import Thread
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from ingestion.spark.contract.spec import TransformerSpec
from ingestion.spark.contract.strict_json import dump, load
from ingestion.spark.etl.transformers import chain
from ingestion.spark.etl.transformers.errors import BadTransformer
from ingestion.spark.etl.transformers.files import NoTransformer, TransformerCode, read_transformer
from ingestion.spark.etl.transformers.jars import JarCode, read_jars
from ingestion.spark.etl.transformers.jvm import JvmTransformer
from ingestion.spark.etl.transformers.request import Answer, Request
from ingestion.spark.etl.views import session_beside
from ingestion.spark.loading.staging import SEQUENCE_COLUMN


def main(answer_path: Path) -> None:
    request = load(Request, sys.stdin.readline(), source="the request")
    Thread(target=_end_with_parent, daemon=True).start()

    def tell(answer: Answer) -> None:
        answer_path.write_text(dump(answer))

    try:
        _run(request, on_call=lambda name: tell(Answer(running=name)))
    except (BadTransformer, NoTransformer) as problem:
        tell(Answer(is_done=True, problem=str(problem)))
    else:
        tell(Answer(is_done=True))


def _end_with_parent() -> None:
    """The other end of the input is closed when the job's process ends, however it does."""
    while os.read(sys.stdin.fileno(), 1024):
        pass
    os._exit(1)


def _run(request: Request, on_call: Any) -> None:
    codes = [_registered_code(request.folder, each) for each in request.transformers]
    transformers = chain.load(codes, on_call)
    spark = _session_in(request)
    made = chain.Chain(
        spark.read.parquet(request.given_uri).drop(SEQUENCE_COLUMN),
        transformers,
        request.stays,
        request.columns,
        on_call=on_call,
    )
    made.write(request.rows_uri, SEQUENCE_COLUMN)
    if request.tries_halves:
        made.check_halves()


def _registered_code(folder: str, spec: TransformerSpec) -> TransformerCode | JvmTransformer:
    name = spec.name
    code = read_jars(folder, name, spec.jars) if spec.is_jvm else read_transformer(folder, name)
    if spec.digest and code.digest != spec.digest:
        files = ", ".join((name.partition(":")[0], *spec.jars))
        raise NoTransformer(
            f"The transformer `{name}` is not as it was when the pipeline was registered: {files} was changed since, or differs between machines. Register the pipeline again, so that all rows are made by the new one."
        )
    return JvmTransformer(code, spec.properties) if isinstance(code, JarCode) else code


def _session_in(request: Request) -> SparkSession:
    """A session of its own in the JVM of the job: of the job's views and settings it sees none."""
    os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"] = str(request.port), request.token
    gateway = launch_gateway()  # type: ignore[no-untyped-call]
    for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"):
        del os.environ[name]  # what a transformer starts has no way into the JVM
    java: Any = gateway.jvm
    context = java.org.apache.spark.api.java.JavaSparkContext(java.org.apache.spark.SparkContext.getOrCreate())
    spark_context = SparkContext(gateway=gateway, jsc=context, conf=SparkConf(_jconf=context.getConf()))
    spark_context.stop = _refuse_to_stop  # type: ignore[method-assign]
    spark_context.setJobGroup(request.group, "transformers", interruptOnCancel=True)
    default = java.org.apache.spark.sql.SparkSession.getDefaultSession().get()
    return session_beside(SparkSession(spark_context, default))


class StopsSpark(RuntimeError):
    """The session is the job's, and no transformer stops it."""


def _refuse_to_stop() -> None:
    raise StopsSpark(StopsSpark.__doc__)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    sys.stdout.flush()
    os._exit(0)  # threads that a transformer has started do not keep it
