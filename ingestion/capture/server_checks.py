"""Can a server be tapped? What is set otherwise than it must be, which rights are missing, and what to do about each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import sqlalchemy as sa

_NEEDED = {
    "log_bin": "ON",
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "binlog_row_metadata": "FULL",
    "log_bin_compress": "OFF",
}
_GRANTS: Mapping[str, tuple[str, ...]] = {
    "REPLICATION SLAVE": ("REPLICATION SLAVE", "REPLICATION REPLICA"),
    "BINLOG MONITOR": ("BINLOG MONITOR", "REPLICATION CLIENT"),
}
"""By the name that a statement takes: what servers call it."""
_VARIABLES = (
    "version",
    "log_slave_updates",
    "gtid_binlog_pos",
    "binlog_expire_logs_seconds",
    "expire_logs_days",
    "binlog_alter_two_phase",
    *_NEEDED,
)
_MIN_KEPT = timedelta(days=1)
_GRANT = re.compile(r"GRANT (.+?) ON (\S+) TO", re.IGNORECASE)


@dataclass(frozen=True)
class ServerFacts:
    """`variables`: the server's, by name. `grants`: of the account, as SHOW GRANTS has them. `filters`: databases that the binlog has only, or leaves out."""

    variables: Mapping[str, str]
    grants: Sequence[str]
    filters: Sequence[str] = ()


@dataclass(frozen=True)
class ServerProblem:
    """`is_warning`: it can be tapped all the same."""

    text: str
    is_warning: bool = False


def read_server_facts(connection: sa.Connection) -> ServerFacts:
    names = ", ".join(f"'{name}'" for name in _VARIABLES)
    variables = connection.exec_driver_sql(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})")
    grants = connection.exec_driver_sql("SHOW GRANTS").scalars()
    facts = ServerFacts({str(name): str(value) for name, value in variables}, [str(grant) for grant in grants])
    if _has_grant(facts, "BINLOG MONITOR"):
        status = dict(connection.exec_driver_sql("SHOW MASTER STATUS").mappings().first() or {})
        filters = [str(status[name]) for name in ("Binlog_Do_DB", "Binlog_Ignore_DB") if status.get(name)]
        return ServerFacts(facts.variables, facts.grants, filters)
    return facts


def server_problems(facts: ServerFacts) -> list[ServerProblem]:
    """None: it can be tapped."""
    return [*_problems(facts)]


def _problems(facts: ServerFacts) -> Iterator[ServerProblem]:
    variables = facts.variables
    if "mariadb" not in variables.get("version", "").lower():
        yield ServerProblem(
            f"The server is {variables.get('version', 'unknown')}: only MariaDB is tapped yet. Follow its tables by their cursor column."
        )
        return
    for name, needed in _NEEDED.items():
        if (value := variables.get(name, "not there")).upper() != needed:
            yield ServerProblem(f"`{name}` is {value}, and must be {needed}: set it in the server's configuration.")
    for grant in _GRANTS:
        if not _has_grant(facts, grant):
            yield ServerProblem(f"The account lacks the right {grant}. Ask for `GRANT {grant} ON *.* TO` it.")
    if len(domains := _domains(variables.get("gtid_binlog_pos", ""))) > 1:
        yield ServerProblem(
            f"The binlog has {len(domains)} GTID domains ({', '.join(domains)}), which are in no order among each other. Write with one `gtid_domain_id`."
        )
    yield from _warnings(facts)


def _warnings(facts: ServerFacts) -> Iterator[ServerProblem]:
    kept = _kept(facts.variables)
    if kept is not None and kept < _MIN_KEPT:
        hours = kept / timedelta(hours=1)
        yield ServerProblem(
            f"The server keeps its binlog for {hours:g} h: what was not read by then is lost. Set `binlog_expire_logs_seconds` to 86400 or more.",
            is_warning=True,
        )
    if facts.variables.get("log_slave_updates", "ON").upper() != "ON":
        yield ServerProblem(
            "`log_slave_updates` is OFF: if the server is a replica, what it replicates is not in its binlog. Set it to ON, or tap its source.",
            is_warning=True,
        )
    if facts.variables.get("binlog_alter_two_phase", "OFF").upper() != "OFF":
        yield ServerProblem(
            "`binlog_alter_two_phase` is ON: each ALTER TABLE is in the binlog twice, and columns that change their names with each other are not told apart. "
            "Set it to OFF.",
            is_warning=True,
        )
    if facts.filters:
        yield ServerProblem(
            f"The binlog is filtered by database ({', '.join(facts.filters)}): changes of others are not in it.",
            is_warning=True,
        )


def _has_grant(facts: ServerFacts, grant: str) -> bool:
    names = {"ALL PRIVILEGES", *_GRANTS[grant]}
    return any(
        names & {name.strip().upper() for name in match[1].split(",")}
        for each in facts.grants
        if (match := _GRANT.match(each)) and match[2] == "*.*"
    )


def _domains(position: str) -> list[str]:
    return sorted({gtid.partition("-")[0].strip() for gtid in position.split(",") if gtid.strip()})


def _kept(variables: Mapping[str, str]) -> timedelta | None:
    """None: for ever."""
    seconds = float(variables.get("binlog_expire_logs_seconds") or 0)
    days = float(variables.get("expire_logs_days") or 0)
    kept = timedelta(seconds=seconds) or timedelta(days=days)
    return kept or None
