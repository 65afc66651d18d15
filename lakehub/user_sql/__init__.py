"""SQL that people write: parsed within bounds, and refused unless it only reads and computes."""


class BadQuery(ValueError):
    """A query that is not run; says why, and what would do. `line`: from 1 on; 0: not known."""

    def __init__(self, text: str, line: int = 0) -> None:
        super().__init__(text)
        self.line = line
