"""The Global Index: where each record key of a table lives, kept in HBase. No Django and no Spark."""
