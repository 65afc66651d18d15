"""The session in which tests run on Spark: ours, with the SQL functions that people may use in it."""

from __future__ import annotations

from pyspark.sql import SparkSession

from ingestion.spark.session import open_session
from quality.spark.sql_functions import register_bloom_functions


def quality_session() -> SparkSession:
    """The session of this process; the first test that wants Spark opens it."""
    spark = open_session("lakehub-quality")
    register_bloom_functions(spark)
    return spark
