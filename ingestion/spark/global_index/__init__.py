"""The Global Index of a table, from Spark's side: built from the table, kept up from its timeline, asked for the keys of a batch."""
