"""The REST API of quality: tests, results, rules, metrics, backtests, external runs."""

SCOPES: dict[str, str] = {"GET": "quality:read"} | dict.fromkeys(("POST", "DELETE"), "catalog:write")
