"""Rows that did not fit: where they are kept."""
