"""SQL that people write: parsed within bounds, and refused unless it only reads and computes."""


class BadQuery(ValueError):
    """A query that is not run; says why, and what would do."""
