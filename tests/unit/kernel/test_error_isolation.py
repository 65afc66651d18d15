from __future__ import annotations

import pytest

from lakehub.kernel.error_isolation import log_and_continue


def test_what_fails_is_logged_and_the_rest_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    done = []
    for number in (1, 0, 2):
        with log_and_continue(f"Dividing by {number}"):
            done.append(2 // number)
    assert done == [2, 1]
    assert "Dividing by 0 failed" in caplog.text
    assert "ZeroDivisionError" in caplog.text


def test_a_worker_that_is_told_to_end_ends() -> None:
    with pytest.raises(KeyboardInterrupt), log_and_continue("Waiting"):
        raise KeyboardInterrupt
