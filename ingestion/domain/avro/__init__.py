"""Schemas of Avro: the column types that hold theirs, and which may follow which."""
