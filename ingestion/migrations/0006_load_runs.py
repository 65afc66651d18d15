from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("ingestion", "0005_captures")]
    operations = [
        migrations.AddField(
            model_name="capture", name="load_run", field=models.UUIDField(blank=True, editable=False, null=True)
        ),
        migrations.AddField(model_name="capture", name="incomplete_copies", field=models.JSONField(blank=True, default=list)),
    ]
