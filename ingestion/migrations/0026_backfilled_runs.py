from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('catalog', '0006_posted_lineage'),
        ('ingestion', '0025_noted_backfills'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='jobrun',
            index=models.Index(condition=models.Q(('kind', 'backfill'), ('state', 'succeeded')), fields=['copy', 'ended_at'], name='jobrun_backfilled'),
        ),
    ]
