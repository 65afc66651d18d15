"""The description of the API is whole: drf-spectacular has nothing to warn of."""

from __future__ import annotations

from pathlib import Path

from django.core.management import call_command
from drf_spectacular.generators import SchemaGenerator

BUSY_AT_TIMES = ("connections", "connections/test", "teams/{name}/channels/test", "teams/{name}/routes/{number}/test")


def test_every_address_is_described(tmp_path: Path) -> None:
    file = tmp_path / "schema.yml"
    call_command("spectacular", validate=True, fail_on_warn=True, file=str(file))
    schema = file.read_text()
    assert schema.startswith("openapi: 3.1.0")
    assert "/api/v1/gate:" in schema


def test_what_may_be_busy_says_so() -> None:
    paths = SchemaGenerator().get_schema(request=None, public=True)["paths"]
    for address in BUSY_AT_TIMES:
        assert "503" in paths[f"/api/v1/{address}"]["post"]["responses"], address
