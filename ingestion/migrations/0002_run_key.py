"""Each run gets a key that the lake knows it by."""

from __future__ import annotations

import uuid

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def name_runs(apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
    job_run = apps.get_model("ingestion", "JobRun")
    for pk in job_run.objects.filter(key=None).values_list("pk", flat=True):
        job_run.objects.filter(pk=pk).update(key=uuid.uuid4())


class Migration(migrations.Migration):
    dependencies = [("ingestion", "0001_initial")]

    operations = [
        migrations.AddField("jobrun", "key", models.UUIDField(default=uuid.uuid4, null=True, editable=False)),
        migrations.RunPython(name_runs, migrations.RunPython.noop),
        migrations.AlterField("jobrun", "key", models.UUIDField(default=uuid.uuid4, unique=True, editable=False)),
    ]
