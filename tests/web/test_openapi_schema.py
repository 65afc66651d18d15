"""The description of the API is whole: drf-spectacular has nothing to warn of."""

from __future__ import annotations

from pathlib import Path

from django.core.management import call_command


def test_every_address_is_described(tmp_path: Path) -> None:
    file = tmp_path / "schema.yml"
    call_command("spectacular", validate=True, fail_on_warn=True, file=str(file))
    schema = file.read_text()
    assert schema.startswith("openapi: 3.1.0")
    assert "/api/v1/gate:" in schema
