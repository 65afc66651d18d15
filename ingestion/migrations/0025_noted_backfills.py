from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('ingestion', '0024_sent_lineage'),
    ]

    operations = [
        migrations.AddField(
            model_name='backfill',
            name='noted',
            field=models.JSONField(blank=True, default=dict),
        ),
        migrations.AddIndex(
            model_name='backfillchunk',
            index=models.Index(condition=models.Q(('ended_at__isnull', False)), fields=['backfill', '-ended_at'], name='chunk_ended'),
        ),
    ]
