"""Keys of every type, doubled in one copy and missing in the other."""

from __future__ import annotations

from tests.contracts.awkward.shape import EVERYWHERE, FILES, PARQUET, POSTGRESQL, Shape

DOUBLED = "SELECT * FROM keyed UNION ALL SELECT * FROM keyed WHERE n = 7"


def keyed(*values: str, kinds: tuple[str, ...] = EVERYWHERE, rows: int = 300) -> Shape:
    """`values` are SQL for the parts of a key over `n`, the number of a row; dc1 has one row twice, dc2 lacks two."""
    parts = ", ".join(f"{value} AS k{number}" for number, value in enumerate(values))
    every = f"WITH keyed AS (SELECT {parts}, 'v' || n AS v, n::INTEGER AS n FROM range({rows}) AS r(n)) "
    return Shape(
        f"{every}{DOUBLED}",
        other=f"{every}SELECT * FROM keyed WHERE n NOT IN (11, 12)",
        key=tuple(f"k{number}" for number in range(len(values))),
        kinds=kinds,
    )


SHAPES = {
    "key of integers": keyed("(n - 150)::INTEGER"),
    "key of great integers": keyed("(n + 9223372036854775000)::BIGINT"),
    "key of whole decimals": keyed("(n::DECIMAL(38, 0) + 1000000000000000000)::DECIMAL(20, 0)"),
    "key of whole numbers in DECIMAL(12,2)": keyed("n::DECIMAL(12, 2)"),
    "key of decimals": keyed("(n / 4)::DECIMAL(12, 2)"),
    "key of texts": keyed("'k' || n"),
    "key of texts in two cases": keyed("chr((65 + n // 2 % 26 + n % 2 * 32)::INTEGER) || n // 52", rows=260),
    "key of scripts": keyed("['é', 'e' || chr(769), 'ß', 'ss', '日本', '✈', 'İ', 'i', 'ﬁ', 'fi'][(n % 10 + 1)::INTEGER] || n // 10"),
    "key of texts with spaces": keyed("repeat(' ', (n % 3)::INTEGER) || 'a' || n // 9 || repeat(' ', (n // 3 % 3)::INTEGER)"),
    "key of hostile texts": keyed("['''', '\"', ';--', '%', '\\', chr(10), chr(9), '{x}', ':a', '?'][(n % 10 + 1)::INTEGER] || n // 10"),
    "key with an empty text": keyed("CASE WHEN n = 0 THEN '' ELSE 'k' || n END"),
    "key of identifiers": keyed("uuid_extract(n)".replace("uuid_extract(n)", "md5(n::VARCHAR)::UUID"), kinds=FILES),
    "key of dates": keyed("DATE '1899-12-31' + n::INTEGER * 100"),
    "key of times": keyed("TIMESTAMP '2026-03-29 01:59:59.999999' + to_seconds(n)"),
    "key of microseconds": keyed("TIMESTAMP '2026-01-01' + to_microseconds(n)"),
    "key of instants": keyed("timezone('UTC', TIMESTAMP '2026-03-29 00:30:00' + to_minutes(n))", kinds=(PARQUET, POSTGRESQL)),
    "key with a boolean": keyed("n % 2 = 0", "(n // 2)::INTEGER"),
    "key of four": keyed("(n % 5)::INTEGER", "'k' || n % 7", "DATE '2026-01-01' + (n // 35)::INTEGER", "n % 2 = 0"),
    "key of bytes": keyed("unhex(printf('%08x', n))", kinds=FILES),
}  # fmt: skip
