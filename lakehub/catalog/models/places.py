"""Where data lies: data centers with their lakes, and connections that data is read from."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from lakehub.accounts.models import SLUG, Team
from lakehub.catalog.encrypted_fields import EncryptedTextField
from lakehub.catalog.metadata import MetadataUnavailable
from lakehub.catalog.metadata.table_locations import NamedTable, TableLocation
from lakehub.catalog.storages import STORAGES, Storage
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

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name

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
