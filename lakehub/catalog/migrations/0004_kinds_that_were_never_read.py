"""Until now jobs did not read the kind of a dataset: rows of `append-only` ones were updated, and the page proposed that kind wherever it
knew no column of changes. So those that follow a column stay as they have worked; whoever wants them append-only says so anew.
"""

from django.db import migrations


def _keep_updating(apps, schema_editor):
    Dataset = apps.get_model("catalog", "Dataset")
    followed = Dataset.objects.filter(kind="append-only", ingested=True).exclude(feed__cursor_column="")
    followed.filter(feed__isnull=False).update(kind="append-plus-update")


class Migration(migrations.Migration):
    dependencies = [("catalog", "0003_pauses_and_source_limits")]
    operations = [migrations.RunPython(_keep_updating, migrations.RunPython.noop)]
