"""Rejected rows that people ask to be tried again."""
