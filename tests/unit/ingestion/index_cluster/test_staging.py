"""HFiles are staged where region servers take them from, or the reason why not is said."""

from __future__ import annotations

import pytest

from ingestion.domain.index_cluster.staging import staging_problem


@pytest.mark.parametrize(
    ("staging", "root"),
    [
        ("hdfs://nn/hfiles", "hdfs://nn/hbase"),
        ("hdfs://nn/hfiles", "hdfs://NN:8020/hbase"),
        ("hdfs:///hfiles", "hdfs://nn:8020/hbase"),  # as Hadoop is configured here
        ("s3a://bucket/hfiles", "s3a://bucket/hbase"),
        ("file:///data/hfiles", "file:/data/hbase"),
        ("hdfs://nn/hfiles", ""),  # not known
    ],
)
def test_a_folder_on_hbases_own_file_system_is_taken(staging: str, root: str) -> None:
    assert staging_problem(staging, root, []) == ""


@pytest.mark.parametrize(
    ("staging", "root", "remedy"),
    [
        ("hdfs://other/hfiles", "hdfs://nn:8020/hbase", "hdfs://nn:8020."),
        ("hdfs://nn:9000/hfiles", "hdfs://nn:8020/hbase", "hdfs://nn:8020."),
        ("s3a://bucket/hfiles", "hdfs://nn/hbase", "hdfs://nn."),
        ("s3a://bucket/hfiles", "s3a://another/hbase", "s3a://another."),
        ("file:///data/hfiles", "hdfs://nn/hbase", "hdfs://nn."),
    ],
)
def test_another_file_system_is_refused_with_both(staging: str, root: str, remedy: str) -> None:
    problem = staging_problem(staging, root, [])
    assert staging in problem
    assert root in problem
    assert problem.endswith(f"a folder of {remedy}")


def test_a_folder_of_this_machine_is_for_servers_on_this_machine() -> None:
    problem = staging_problem("file:///data/hfiles", "file:///data/hbase", ["rs2:16020"])
    assert "the region server rs2:16020 is on another one" in problem
    assert staging_problem("hdfs://nn/hfiles", "hdfs://nn/hbase", ["rs2:16020"]) == ""
