"""Rejected rows as texts: how they are written down, and how they are read again."""
