"""What is wrong with a server that is to be tapped is said before anything is read, with what to do."""

from __future__ import annotations

import pytest

from ingestion.capture.server_checks import ServerFacts, server_problems

VARIABLES = {
    "version": "10.11.19-MariaDB-0+deb12u1-log",
    "log_bin": "ON",
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "binlog_row_metadata": "FULL",
    "log_bin_compress": "OFF",
    "gtid_binlog_pos": "0-1-17",
    "binlog_expire_logs_seconds": "864000",
    "expire_logs_days": "10.000000",
}
GRANTS = (
    "GRANT SELECT, REPLICATION SLAVE, BINLOG MONITOR ON *.* TO `tap`@`%` IDENTIFIED BY PASSWORD '*1'",
    "GRANT INSERT ON `shop`.* TO `tap`@`%`",
)


def problems(*, grants: tuple[str, ...] = GRANTS, filters: tuple[str, ...] = (), **variables: str) -> list[str]:
    return [problem.text for problem in server_problems(ServerFacts(VARIABLES | variables, grants, filters))]


def test_a_server_that_is_set_up_has_no_problem() -> None:
    assert problems() == []
    assert problems(grants=("GRANT ALL PRIVILEGES ON *.* TO `lakehub`@`127.0.0.1` WITH GRANT OPTION",)) == []
    assert problems(grants=("GRANT REPLICATION REPLICA, REPLICATION CLIENT ON *.* TO `tap`@`%`",)) == []


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        ({"log_bin": "OFF"}, "`log_bin` is OFF, and must be ON"),
        ({"binlog_format": "MIXED"}, "`binlog_format` is MIXED, and must be ROW"),
        ({"binlog_row_image": "MINIMAL"}, "`binlog_row_image` is MINIMAL, and must be FULL"),
        ({"binlog_row_metadata": "NO_LOG"}, "`binlog_row_metadata` is NO_LOG, and must be FULL"),
        ({"log_bin_compress": "ON"}, "`log_bin_compress` is ON, and must be OFF"),
        ({"version": "8.4.3"}, "The server is 8.4.3: only MariaDB is tapped yet"),
        ({"gtid_binlog_pos": "0-1-17,3-1-2"}, "has 2 GTID domains (0, 3)"),
        ({"binlog_alter_two_phase": "ON"}, "`binlog_alter_two_phase` is ON: each ALTER TABLE is in the binlog twice"),
        ({"log_slave_updates": "OFF"}, "`log_slave_updates` is OFF: if the server is a replica"),
        ({"binlog_expire_logs_seconds": "3600"}, "keeps its binlog for 1 h"),
        ({"binlog_expire_logs_seconds": "0", "expire_logs_days": "0.5"}, "keeps its binlog for 12 h"),
    ],
)
def test_each_setting_is_told_with_what_it_must_be(variables: dict[str, str], text: str) -> None:
    (problem,) = problems(**variables)
    assert text in problem


def test_a_binlog_that_is_kept_for_ever_is_no_problem() -> None:
    assert problems(binlog_expire_logs_seconds="0", expire_logs_days="0") == []


@pytest.mark.parametrize(
    "grants", [(), ("GRANT USAGE ON *.* TO `tap`@`%`",), ("GRANT ALL PRIVILEGES ON `shop`.* TO `tap`@`%`",)]
)
def test_rights_that_are_missing_are_told_by_name(grants: tuple[str, ...]) -> None:
    slave, monitor = problems(grants=grants)
    assert "GRANT REPLICATION SLAVE ON *.* TO" in slave
    assert "GRANT BINLOG MONITOR ON *.* TO" in monitor


def test_a_filter_is_a_warning() -> None:
    (problem,) = server_problems(ServerFacts(VARIABLES, GRANTS, ("shop",)))
    assert problem.is_warning
    assert "filtered by database (shop)" in problem.text
