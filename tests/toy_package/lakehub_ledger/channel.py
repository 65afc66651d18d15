"""Writes each message at the end of a file."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from incidents.channels import Channel, Notification
from lakehub.kernel.errors import Refused


class LedgerNotes(Channel):
    """`address`: the path of the file."""

    def check(self, address: str) -> None:
        if not Path(address).is_absolute():
            raise Refused(f"`{address}` is no absolute path.")

    def shown(self, address: str) -> str:
        return Path(address).name

    def send(self, note: Notification, address: str, *, now: datetime) -> str:
        with Path(address).open("a") as notes:
            notes.write(f"{note.subject}\n{note.body}\n")
        return "written"
