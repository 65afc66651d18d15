"""Lakehub: data quality and incidents for a lake, with ingestion built in."""

__version__ = "0.1.0"
