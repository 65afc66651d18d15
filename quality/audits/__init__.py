"""Tests of rows before they are committed, in the language of all tests: a pipeline names them, and its jobs ask here. No Django: it runs in Spark's process."""
