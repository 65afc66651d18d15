"""Settings: a bad value is refused by name."""

from __future__ import annotations

from typing import Any, cast

import pytest
from psycopg.conninfo import make_conninfo

from lakehub import environment as env


def test_bad_values_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEHUB_X", "maybe")
    with pytest.raises(env.InvalidSetting, match="LAKEHUB_X='maybe' is neither true nor false"):
        env.flag("LAKEHUB_X", False)
    with pytest.raises(env.InvalidSetting, match="not a whole number"):
        env.number("LAKEHUB_X", 1)
    with pytest.raises(env.InvalidSetting, match="There are: `shifted`, `wall`"):
        env.choice("LAKEHUB_X", "wall", ("wall", "shifted"))
    with pytest.raises(env.InvalidSetting, match="Did you mean `postgresql`"):
        env.database("postgres://u@h/x")


def test_hosts_are_names_and_networks_without_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEHUB_X", "db.example.com, *.OPS.example.com ,10.1.0.0/16,192.0.2.7")
    assert env.hosts("LAKEHUB_X") == ["db.example.com", "*.ops.example.com", "10.1.0.0/16", "192.0.2.7/32"]
    monkeypatch.setenv("LAKEHUB_X", "db.example.com:5432")
    with pytest.raises(
        env.InvalidSetting, match=r"LAKEHUB_X says 'db\.example\.com:5432': write a host without a port"
    ):
        env.hosts("LAKEHUB_X")


def test_limits_are_read_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert env.limits("LAKEHUB_X", "spark=1") == {"spark": 1}
    for text, problem in {
        "spark=0": "write spark=1 or more",
        "spark": "or more",
    }.items():
        monkeypatch.setenv("LAKEHUB_X", text)
        with pytest.raises(env.InvalidSetting, match=problem):
            env.limits("LAKEHUB_X", "")
    monkeypatch.setenv("LAKEHUB_X", "")
    assert env.limits("LAKEHUB_X", "spark=1") == {}
    monkeypatch.setenv("LAKEHUB_X", "0")
    with pytest.raises(env.InvalidSetting, match="1 is the least"):
        env.number("LAKEHUB_X", 2, least=1)


def options(query: str) -> dict[str, Any]:
    return cast("dict[str, Any]", env.database(f"postgresql://u@h/x{query}")["OPTIONS"])


def test_a_postgresql_that_is_silent_is_left_in_seconds() -> None:
    assert 2 <= options("")["connect_timeout"] <= 10
    assert 0 < options("")["tcp_user_timeout"] <= 60_000
    assert options("")["keepalives"] == 1
    assert options("?connect_timeout=20&keepalives=0").items() >= {"connect_timeout": "20", "keepalives": "0"}.items()
    assert libpq_takes(options("?sslmode=require"))


def libpq_takes(database_options: dict[str, Any]) -> bool:
    """A word that it does not know would keep Lakehub from starting."""
    words = {name: value for name, value in database_options.items() if name != "prepare_threshold"}  # psycopg's own
    return bool(make_conninfo("", **words))


def test_a_database_url_is_taken_apart() -> None:
    database = env.database("postgresql://u:p%40ss@db:5433/lakehub?sslmode=require")
    assert (database["USER"], database["PASSWORD"], database["HOST"], database["PORT"]) == ("u", "p@ss", "db", "5433")
    assert (
        options("?sslmode=require").items()
        >= {"sslmode": "require", "prepare_threshold": env.PREPARE_THRESHOLD}.items()
    )
    assert env.database("sqlite:////data/lakehub.db")["NAME"] == "/data/lakehub.db"


def test_how_often_a_statement_comes_before_it_is_prepared() -> None:
    for query, threshold in {
        "": env.PREPARE_THRESHOLD,
        "?prepare_threshold=1": 1,
        "?prepare_threshold=none": None,
    }.items():
        assert options(query)["prepare_threshold"] == threshold
    with pytest.raises(env.InvalidSetting, match="write `none` or after how many times"):
        env.database("postgresql://u@h/x?prepare_threshold=never")


def test_a_receiver_is_an_address_without_a_password(monkeypatch: pytest.MonkeyPatch) -> None:
    assert env.receiver("LAKEHUB_X") == ""
    monkeypatch.setenv("LAKEHUB_X", "https://marquez.example.org:5000/api/v1/lineage")
    assert env.receiver("LAKEHUB_X") == "https://marquez.example.org:5000/api/v1/lineage"
    for bad in ("marquez.example.org", "ftp://h/x", "https://", "https://h:port/", "https://h/a b", "https://[::1/"):
        monkeypatch.setenv("LAKEHUB_X", bad)
        with pytest.raises(env.InvalidSetting, match=r"LAKEHUB_X is .*: write https://host/path"):
            env.receiver("LAKEHUB_X")
    monkeypatch.setenv("LAKEHUB_X", "https://me:hunter2@h/x")
    with pytest.raises(env.InvalidSetting, match="with a user and password") as refused:
        env.receiver("LAKEHUB_X")
    assert "hunter2" not in str(refused.value)


def test_a_key_that_no_header_can_have_is_refused_without_being_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEHUB_X", "abc-_.~+/=")
    assert env.bearer("LAKEHUB_X") == "abc-_.~+/="
    for bad in ("abc\r\nX: y", "a b", "schlüssel"):
        monkeypatch.setenv("LAKEHUB_X", bad)
        with pytest.raises(env.InvalidSetting, match="LAKEHUB_X is not a valid key") as refused:
            env.bearer("LAKEHUB_X")
        assert bad not in str(refused.value)
