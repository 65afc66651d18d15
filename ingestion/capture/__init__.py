"""Capture: what changes in a source database, from its own log, as change events in a changelog. Spark's side and Django know nothing of it."""
