"""The only Python of ours that Spark's executors call, with the filters of `quality.domain.bloom` that it is given.

Everything else there is Spark's own expressions, put together by the driver.
"""

from __future__ import annotations

from quality.domain.bloom.filters import KeyFilter


def might_contain_key(key_filter: KeyFilter, key: str) -> bool:
    """False where the filter surely lacks the key."""
    return bool(key_filter.might_contain([key.encode()])[0])
