"""What the role of a connection may do in its database besides reading."""

from __future__ import annotations

from dataclasses import dataclass

MAX_NAMED = 5
"""So many writes are named; more are not looked for."""


@dataclass(frozen=True)
class DatabaseRole:
    """A role, or user, as the database knows it.

    `powers` reach beyond tables: superuser, files or programs of the server, replication, other accounts. `writes` are what it may
    change, at most MAX_NAMED: `INSERT on shop.orders`.
    """

    name: str
    powers: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()

    @property
    def only_reads(self) -> bool:
        return not self.powers and not self.writes


def role_warning(role: DatabaseRole) -> str:
    """For people: what the role could do by a mistake or an attack, and the remedy. Empty where it only reads."""
    if role.only_reads:
        return ""
    powers = f"has {', '.join(role.powers)}" if role.powers else ""
    writes = f"may write ({', '.join(role.writes)})" if role.writes else ""
    consequence = " Queries that people write are not run with it." if role.powers else ""
    return (
        f"The role {role.name} {' and '.join(filter(None, (powers, writes)))}; Lakehub only reads.{consequence} "
        "Give the connection a role that can do nothing else."
    )
