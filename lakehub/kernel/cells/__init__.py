"""Cells as Uber's Schemaless keeps them in a database: a row key, a column, a reference key and a JSON object. What rows of the lake they make."""
