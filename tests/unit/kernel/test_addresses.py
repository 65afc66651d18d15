"""What is shown of a URL holds no secret."""

from __future__ import annotations

import pytest

from lakehub.kernel.addresses import host_of, shown


@pytest.mark.parametrize(
    ("url", "seen"),
    [
        ("postgresql://u:hunter2@db:5432/x", "postgresql://u:***@db:5432/x"),
        ("mysql://db/x?user=u&password=hunter2", "mysql://db/x?…"),
        ("sqlite:////data/ops.db", "sqlite:////data/ops.db"),
        ("https://u@host/#hunter2", "https://u@host/"),
        ("http://[hunter2", "this URL (which does not parse)"),
        ("hunter2", "this URL (which has no scheme)"),
    ],
)
def test_a_url_is_shown_without_its_secrets(url: str, seen: str) -> None:
    assert shown(url) == seen
    assert "hunter2" not in shown(url)


def test_of_a_webhook_only_the_host_is_told() -> None:
    assert host_of("https://hooks.example.com/services/T0/B0/hunter2") == "hooks.example.com"
    assert host_of("https://host:99999/") == "host"
