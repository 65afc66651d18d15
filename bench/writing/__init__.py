"""Writes into the lake by Lakehub and by the table format alone, of the same rows in the same Spark session."""
