"""Which record keys, or partitions, of a pipeline's table a change of an input reaches, as queries that are made from its SELECT."""
