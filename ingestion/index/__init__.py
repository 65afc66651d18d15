"""The Global Index: where the row of each key lies, over all partitions of a dataset, kept in HBase. It knows no Django and no Spark."""
