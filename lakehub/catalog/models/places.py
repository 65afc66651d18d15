"""Where data lies: data centers with their lakes, and connections that data is read from."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from lakehub.accounts.models import SLUG, Team
from lakehub.catalog.metadata import MetadataUnavailable
from lakehub.catalog.metadata.roles import DatabaseRole, role_warning
from lakehub.catalog.metadata.table_locations import NamedTable, TableLocation
from lakehub.catalog.storages import STORAGES, Storage
from lakehub.db.encrypted_fields import EncryptedTextField
from lakehub.kernel.registry import UnknownPlugin


class DataCenter(models.Model):
    """A place with a lake of its own. `lake_uri` is a URI such as file:///lake/dc1."""

    name = models.CharField(max_length=63, unique=True, validators=[SLUG])
    lake_uri = models.CharField(max_length=500)

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name


class Connection(models.Model):
    """A place that data is read from; `plugin` names its storage, and the source that reads its rows."""

    name = models.CharField(max_length=63, unique=True, validators=[SLUG])
    plugin = models.CharField(max_length=30)
    url = EncryptedTextField()
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="connections")
    rows_per_s = models.PositiveIntegerField(null=True, blank=True)
    """How fast all jobs and looks together may read there; null: as fast as they can."""
    max_connections = models.PositiveSmallIntegerField(null=True, blank=True)
    """How many of them may be at work there at once; null: any number."""
    role_facts = models.JSONField(null=True, blank=True, editable=False)
    """What its database said of the role in the URL when that was tried last; null where the database has none, or does not say."""

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def role(self) -> DatabaseRole | None:
        facts = self.role_facts
        return facts and DatabaseRole(facts["name"], tuple(facts["powers"]), tuple(facts["writes"]))

    @property
    def role_warning(self) -> str:
        """For people; empty where the role only reads, or is not known."""
        return role_warning(self.role) if self.role is not None else ""

    @property
    def storage(self) -> Storage:
        """Raises MetadataUnavailable where the package that brings it is not installed (any more)."""
        try:
            return STORAGES.get(self.plugin)(self.url)
        except UnknownPlugin as unknown:
            raise MetadataUnavailable(f"The connection {self.name} cannot be read: {unknown}") from unknown

    def table_location(self, table: str) -> TableLocation:
        """Where the rows of its table lie; of a storage that cannot say, the table of this URL."""
        try:
            return self.storage.table_location(table)
        except MetadataUnavailable:
            return NamedTable(self.url, table)


class ConnectionTrial(models.Model):
    """One of the trials of connections that may be under way at once in the whole instance."""

    number = models.PositiveSmallIntegerField(unique=True)
    leased_by = models.CharField(max_length=40, blank=True)
    leased_until = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"trial {self.number}"
