"""Column lineage of a pipeline: from which columns of its inputs each column of its table is made, and how."""
