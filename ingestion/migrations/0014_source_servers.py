from django.db import migrations, models


class Migration(migrations.Migration):
    """What is owed is of a minute at most, and places are of jobs at work: nobody misses what is not taken along."""

    dependencies = [
        ('ingestion', '0013_source_hours'),
    ]

    operations = [
        migrations.DeleteModel(name='SourceQuota'),
        migrations.CreateModel(
            name='SourceQuota',
            fields=[
                ('server', models.CharField(max_length=1000, primary_key=True, serialize=False)),
                ('paid_until', models.DateTimeField()),
                ('rows_per_s', models.PositiveIntegerField()),
            ],
        ),
        migrations.RemoveIndex(model_name='sourceplace', name='places_of_connection'),
        migrations.AddField(
            model_name='sourceplace',
            name='server',
            field=models.CharField(default='', editable=False, max_length=1000),
        ),
        migrations.AddIndex(
            model_name='sourceplace',
            index=models.Index(fields=['server', 'asked_at'], name='places_of_server'),
        ),
    ]
