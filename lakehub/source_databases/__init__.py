"""Databases that are read: which URLs are opened, by which drivers, with which options, and for how long one may say nothing.

Everything that reads a database of somebody else opens it here: the catalog, the engines of the tests, and the source that
ingestion reads, which runs in Spark's driver. So nothing here knows Django.
"""
