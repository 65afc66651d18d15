from __future__ import annotations

from pathlib import Path

from lakehub.demo.instance import Instance


def test_the_demo_does_not_touch_another_instance(tmp_path: Path) -> None:
    others = {"LAKEHUB_DATABASE_URL": "postgresql://prod/lakehub", "LAKEHUB_BROKER_URL": "redis://prod", "HOME": "/me"}
    environment = Instance(tmp_path, "127.0.0.1:8000").environment(others)
    assert environment["LAKEHUB_HOME"] == str(tmp_path)
    assert "LAKEHUB_DATABASE_URL" not in environment
    assert "LAKEHUB_BROKER_URL" not in environment
    assert environment["HOME"] == "/me"


def test_its_processes_share_a_clock_that_the_story_moves(tmp_path: Path) -> None:
    assert Instance(tmp_path, "127.0.0.1:8000").environment({})["LAKEHUB_CLOCK"] == "shifted"
