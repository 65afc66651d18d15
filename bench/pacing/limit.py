"""What each region server answers at most: a quota of HBase, which throttles whoever asks for more."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from ingestion.spark.global_index.hbase_client.administration import open_administration
from ingestion.spark.session import jvm

SETTINGS = {"hbase.quota.enabled": "true", "hbase.quota.refresh.period": "1000"}
"""Of an HBase that has quotas, and in which servers see within a second that one was set."""
_SOURCE = """
package lakehub;

import java.io.IOException;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.quotas.QuotaSettingsFactory;
import org.apache.hadoop.hbase.quotas.ThrottleType;

public class ServerLimit {
    public void set(String quorum, long rows) throws IOException {
        ClassLoader before = Thread.currentThread().getContextClassLoader();
        Thread.currentThread().setContextClassLoader(ServerLimit.class.getClassLoader());
        try {
            Configuration configuration = HBaseConfiguration.create();
            configuration.set("hbase.zookeeper.quorum", quorum);
            Connection connection = ConnectionFactory.createConnection(configuration);
            connection.getAdmin().setQuota(
                QuotaSettingsFactory.throttleRegionServer("all", ThrottleType.READ_NUMBER, rows, TimeUnit.SECONDS));
            connection.close();
        } finally {
            Thread.currentThread().setContextClassLoader(before);
        }
    }
}
"""


def limit_servers(spark: SparkSession, quorum: str, rows_per_s: int) -> None:
    """Each answers so many rows a second from then on, of all tables together. Two may set it at once."""
    java: Any = jvm(spark)
    with open_administration(spark, {"hbase.zookeeper.quorum": quorum}) as hbase:
        compiler = java.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(hbase._java.getClass().getClassLoader())
        compiler.cook(_SOURCE)
        limit = compiler.getClassLoader().loadClass("lakehub.ServerLimit").getConstructors()[0].newInstance(None)
        limit.set(quorum, rows_per_s)
