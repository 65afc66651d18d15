"""Lineage that is sent: of each run of a pipeline that has ended, its events as OpenLineage has them."""
