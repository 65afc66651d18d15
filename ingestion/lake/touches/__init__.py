"""The partitions that commits have changed, as rows for quality: few where many commits change the same, and none before a table is whole."""
