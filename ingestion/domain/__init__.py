"""Pure rules of ingestion: what becomes of an event, which checkpoint counts, how far behind a dataset is, how a schema may change."""
