"""Whether the role of a connection only reads: asked of the database, which knows what was granted by whatever way.

Sessions of ours are read-only besides. Here it is said what would be left of that if somebody got out of one: roles may
be known for PostgreSQL, MySQL and MariaDB; other databases are not asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import sqlalchemy as sa

from lakehub.catalog.metadata.roles import MAX_NAMED, DatabaseRole


def read_powers(connection: sa.Connection) -> DatabaseRole | None:
    """The role with what reaches beyond tables, and without its writes: quick, also where there are many tables. None: not known.

    Raises SQLAlchemyError.
    """
    if connection.dialect.name == "postgresql":
        return DatabaseRole(_postgresql_name(connection), tuple(_postgresql_powers(connection)))
    if connection.dialect.name in _MYSQL:
        return _mysql_role(connection)
    return None


def read_role(connection: sa.Connection) -> DatabaseRole | None:
    """The role with all of it. None: not known. Raises SQLAlchemyError."""
    role = read_powers(connection)
    if role is None or connection.dialect.name != "postgresql":
        return role
    return DatabaseRole(role.name, role.powers, tuple(_postgresql_writes(connection)))


# PostgreSQL

_MEMBERSHIPS = "SELECT oid, rolname, rolsuper, rolreplication, rolcreaterole FROM pg_roles WHERE pg_has_role(session_user, oid, 'MEMBER')"
"""The roles that the session is, or may become by SET ROLE; of a superuser all."""
_SERVER_ROLES = ("pg_read_server_files", "pg_write_server_files", "pg_execute_server_program")
_SERVER_FUNCTIONS = (
    "pg_read_file",
    "pg_read_binary_file",
    "pg_ls_dir",
    "pg_stat_file",
    "lo_import",
    "lo_export",
    "pg_reload_conf",
    "pg_promote",
    "pg_switch_wal",
)


def _postgresql_name(connection: sa.Connection) -> str:
    return str(connection.exec_driver_sql("SELECT session_user").scalar_one())


def _postgresql_powers(connection: sa.Connection) -> Iterator[str]:
    for _, name, is_super, replicates, creates_roles in connection.exec_driver_sql(_MEMBERSHIPS).all():
        if is_super:
            # Of all that is a superuser may be anything: the rest says nothing more.
            yield "superuser"
            return
        if replicates:
            yield "replication"
        if creates_roles:
            yield "CREATEROLE"
        if name in _SERVER_ROLES:
            yield str(name)
    functions = connection.execute(
        sa.text(
            "SELECT DISTINCT p.proname FROM pg_proc AS p WHERE p.pronamespace = CAST('pg_catalog' AS regnamespace) "
            "AND p.proname = ANY(:names) AND has_function_privilege(session_user, p.oid, 'EXECUTE') ORDER BY 1"
        ),
        {"names": list(_SERVER_FUNCTIONS)},
    )
    yield from (f"EXECUTE on {name}" for (name,) in functions)


_TABLE_WRITES = """
SELECT n.nspname, c.relname, p.privilege
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
CROSS JOIN (VALUES ('INSERT'), ('UPDATE'), ('DELETE'), ('TRUNCATE')) AS p(privilege)
WHERE c.relkind IN ('r', 'p', 'v', 'f') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
AND EXISTS (
    SELECT FROM pg_roles AS r WHERE pg_has_role(session_user, r.oid, 'MEMBER') AND has_schema_privilege(r.oid, n.oid, 'USAGE')
    AND (has_table_privilege(r.oid, c.oid, p.privilege)
         OR (p.privilege IN ('INSERT', 'UPDATE') AND has_any_column_privilege(r.oid, c.oid, p.privilege)))
)
ORDER BY 1, 2, 3 LIMIT :most
"""
_CREATES = """
SELECT 'CREATE on database ' || current_database() WHERE has_database_privilege(session_user, current_database(), 'CREATE')
UNION ALL
SELECT 'CREATE in schema ' || n.nspname FROM pg_namespace AS n
WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND has_schema_privilege(session_user, n.oid, 'CREATE')
LIMIT :most
"""


def _postgresql_writes(connection: sa.Connection) -> list[str]:
    most = {"most": MAX_NAMED}
    tables = connection.execute(sa.text(_TABLE_WRITES), most)
    writes = [f"{privilege} on {schema}.{table}" for schema, table, privilege in tables]
    return [*writes, *connection.execute(sa.text(_CREATES), most).scalars()][:MAX_NAMED]


# MySQL and MariaDB

_MYSQL = ("mysql", "mariadb")
_GRANT = re.compile(r"GRANT (?P<privileges>.+?) ON (?P<object>.+?) TO ", re.IGNORECASE)
_ROLE_GRANT = re.compile(r"GRANT (?P<roles>(?:(?! ON ).)+?) TO [`'].+[`']@", re.IGNORECASE)
"""To a user, who has a host; what a role has is shown as its own."""
_EVERYTHING = "*.*"
_SYSTEM_SCHEMA = re.compile(r"(?:TABLE |FUNCTION |PROCEDURE )?`?mysql`?\.", re.IGNORECASE)
_COLUMNS = re.compile(r"\([^)]*\)")
_READING = frozenset(
    {
        "USAGE",
        "SELECT",
        "SHOW VIEW",
        "SHOW DATABASES",
        "SHOW CREATE ROUTINE",
        "SHOW_ROUTINE",
        "EXECUTE",
        "PROCESS",
        "REPLICATION CLIENT",
        "BINLOG MONITOR",
        "SLAVE MONITOR",
        "REPLICA MONITOR",
    }
)
"""What lets a user see data and the state of the server, and nothing more. Whatever else is granted is a write or a power."""


def _mysql_role(connection: sa.Connection) -> DatabaseRole:
    name = str(connection.exec_driver_sql("SELECT CURRENT_USER()").scalar_one())
    powers, writes = dict[str, None](), dict[str, None]()
    for privileges, target in _granted(_mysql_grants(connection)):
        for privilege in privileges:
            if target == _EVERYTHING:
                # It holds for the tables of accounts and privileges too.
                powers[f"{privilege} on {target}"] = None
            elif _SYSTEM_SCHEMA.match(target):
                powers[f"{privilege} on {target}"] = None
            else:
                writes[f"{privilege} on {target.replace('`', '')}"] = None
    return DatabaseRole(name, tuple(powers)[:MAX_NAMED], tuple(writes)[:MAX_NAMED])


def _granted(grants: Iterable[str]) -> Iterator[tuple[list[str], str]]:
    """(privileges that do more than read, on what) of each line of SHOW GRANTS."""
    for grant in grants:
        if (match := _GRANT.match(grant)) is None:
            continue
        names = [name.strip().upper() for name in _COLUMNS.sub("", match["privileges"]).split(",")]
        if "WITH GRANT OPTION" in grant[match.end() :].upper():
            names.append("GRANT OPTION")
        if more := [name for name in names if name not in _READING]:
            yield more, match["object"]


def _mysql_grants(connection: sa.Connection) -> Sequence[str]:
    """Those of the user and of all roles that it may take, also of roles of roles."""
    own = list(connection.exec_driver_sql("SHOW GRANTS").scalars())
    roles = sorted({role for grant in own for role in _roles_of(grant)})
    by_role = _mariadb_grants if getattr(connection.dialect, "is_mariadb", False) else _mysql_grants_using
    return [*own, *by_role(connection, roles)]


def _mysql_grants_using(connection: sa.Connection, roles: Sequence[str]) -> Iterator[str]:
    for role in roles:
        yield from connection.exec_driver_sql(f"SHOW GRANTS FOR CURRENT_USER() USING {_escaped(role)}").scalars()


def _mariadb_grants(connection: sa.Connection, roles: Sequence[str]) -> Iterator[str]:
    """It shows those of a role only to whoever has taken it; the session gets its own role back."""
    before = connection.exec_driver_sql("SELECT CURRENT_ROLE()").scalar_one()
    try:
        for role in roles:
            connection.exec_driver_sql(f"SET ROLE {_escaped(role)}")
            yield from connection.exec_driver_sql("SHOW GRANTS").scalars().all()
    finally:
        connection.exec_driver_sql(f"SET ROLE {_escaped(_quoted(before)) if before else 'NONE'}")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _escaped(text: str) -> str:
    """As the driver takes a statement with no parameters."""
    return text.replace("%", "%%")


def _roles_of(grant: str) -> list[str]:
    """The roles that a line of SHOW GRANTS grants, quoted as the server quotes them."""
    match = _ROLE_GRANT.match(grant)
    return (
        re.findall(r"`(?:[^`]|``)+`(?:@`(?:[^`]|``)*`)?", match["roles"])
        if match and _GRANT.match(grant) is None
        else []
    )
