"""What a load reads of a captured table, as Avro files: an interrupted load goes on with them, and another load can read them again without the source."""
